import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { closest, parseDuration } from '@plat/core'
import { grantsOf, parseResource } from '@plat/resources'
import { CommandError } from './output.ts'

/** Grants of a session, from the Agent resource (docs/spec/crds.md). */
export interface AgentGrant {
  readonly namespace: string
  readonly name: string
  readonly tier: string
  readonly scopes: readonly string[]
  /** Names by which the agent calls its MCP servers. */
  readonly tools: readonly string[]
  /** 0 leaves the lifetime to the broker. */
  readonly maxTTLSeconds: number
}

/**
 * Reads `<dir>/resources/agents/<namespace>/<name>.yaml`.
 * @throws CommandError that names the file to write.
 */
export async function readAgent(dir: string, reference: string): Promise<AgentGrant> {
  const [namespace, name] = reference.includes('/') ? splitOnce(reference) : ['default', reference]
  const path = join(dir, 'resources', 'agents', namespace, `${name}.yaml`)
  const text = await readFile(path, 'utf8').catch(async () => {
    throw new CommandError(`no agent ${namespace}/${name}: ${await whatThereIs(dir, { namespace, name, path })}`)
  })
  const parsed = parseResource('Agent', text)
  if (parsed.object === null) throw new CommandError(`${path}: ${parsed.problems.join('; ')}`)
  const { spec } = parsed.object
  const { scopes, tools } = grantsOf({ namespace, name }, spec)
  return {
    namespace,
    name,
    tier: spec.tier,
    scopes,
    tools,
    maxTTLSeconds: Math.floor((parseDuration(spec.maxSessionTTL ?? '0s') ?? 0) / 1000),
  }
}

/** A hint: the agent that may have been meant, the existing agents, or the file to write. */
async function whatThereIs(dir: string, wanted: { namespace: string; name: string; path: string }): Promise<string> {
  const files = await readdir(join(dir, 'resources', 'agents'), { recursive: true }).catch(() => [])
  const known = files.filter((file) => file.endsWith('.yaml')).map((file) => file.slice(0, -'.yaml'.length))
  const meant = closest(`${wanted.namespace}/${wanted.name}`, known)
  if (meant !== null) return `did you mean ${meant}?`
  return known.length === 0 ? `write ${wanted.path}` : `${wanted.path} does not exist; there is ${known.join(', ')}`
}

function splitOnce(reference: string): [string, string] {
  const slash = reference.indexOf('/')
  return [reference.slice(0, slash), reference.slice(slash + 1)]
}
