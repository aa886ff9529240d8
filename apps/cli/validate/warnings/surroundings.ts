import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { GatewayConfig } from '@plat/gateway/config'
import { checkPrices, type PriceCheck } from '@plat/gateway/config-files'
import { readObservedTools } from '@plat/gateway/pins/observed'
import type { Declared } from '@plat/operator'
import type { Manifest } from '@plat/resources'

/** Everything that is checked for warnings. */
export interface Surroundings {
  readonly declared: Declared
  /** gateway.json with defaults and without errors. */
  readonly config: GatewayConfig
  /** Null if prices or routes cannot be read. */
  readonly prices: PriceCheck | null
  /** Tools by `<namespace>/<name>` of their server, as far as they are known. */
  readonly tools: ReadonlyMap<string, ReadonlySet<string>>
  readonly env: NodeJS.ProcessEnv
  /** The governed directory. */
  readonly dir: string
  hasSecret(namespace: string, ref: { readonly name: string; readonly key: string }): boolean
}

/** A problem of an object, or of gateway.json, that does not stop plat. */
export interface Warning {
  /** Null: gateway.json. */
  readonly object: Manifest | null
  /** `spec.rules[0].match.tools[1]` */
  readonly field: string
  /** Problem and fix. */
  readonly text: string
}

export interface SurroundingsOptions {
  readonly declared: Declared
  readonly config: GatewayConfig
  readonly dir: string
  /** Where Secrets are as files: `<namespace>/<name>/<key>`. */
  readonly secretsDir: string
  readonly env: NodeJS.ProcessEnv
}

/** Reads what warnings depend on besides the resources. */
export async function readSurroundings(options: SurroundingsOptions): Promise<Surroundings> {
  const { declared, config, dir, secretsDir, env } = options
  return {
    declared,
    config,
    env,
    dir,
    prices: checkPrices(config, env),
    tools: withDocumented(declared, withPinned(declared, await readObservedTools(config.pinStorePath))),
    hasSecret: (namespace, { name, key }) => existsSync(join(secretsDir, namespace, name, key)),
  }
}

/** The tools of an API are those of its document. */
function withDocumented({ apis = new Map() }: Declared, known: Surroundings['tools']): Surroundings['tools'] {
  const tools = new Map(known)
  for (const [key, result] of apis) if ('tools' in result) tools.set(key, new Set(result.tools.map(({ name }) => name)))
  return tools
}

/** Adds the tools that resources pin. */
function withPinned({ servers }: Declared, observed: Surroundings['tools']): Surroundings['tools'] {
  const tools = new Map<string, ReadonlySet<string>>(observed)
  for (const { metadata, spec } of servers) {
    const key = `${metadata.namespace}/${metadata.name}`
    const pinned = Object.keys(spec.toolPins?.pins ?? {})
    if (pinned.length > 0) tools.set(key, new Set([...(tools.get(key) ?? []), ...pinned]))
  }
  return tools
}
