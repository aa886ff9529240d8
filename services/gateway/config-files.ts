import { existsSync, readFileSync } from 'node:fs'
import { regional } from '@plat/cloud'
import type { Problem } from '@plat/config'
import type { GatewayConfig } from './config.ts'
import { decodePricing } from './decide/budgets/pricing/decode.ts'
import { noPrices } from './decide/budgets/pricing/table.ts'
import { unknownPriceKeys } from './decide/budgets/pricing/unknown.ts'
import { decodeModels } from './targets/models/decode.ts'
import { PROVIDER_NAMES } from './targets/models/providers.ts'
import { buildRoutes } from './targets/models/registry.ts'

/**
 * Returns the problems that `-check-config` reports of the content of files that gateway.json names. The gateway itself starts with such
 * files: it refuses them when it reads them, or ignores keys that match nothing.
 */
export function checkFiles(config: GatewayConfig, env: NodeJS.ProcessEnv): readonly Problem[] {
  const { pricingFile: file } = config
  const bytes = contentOf(file)
  if (bytes === null) return []
  const decoded = decodePricing(bytes)
  const messages =
    'problems' in decoded
      ? decoded.problems
      : unknownPriceKeys(decoded.table.modelKeys, { providers: PROVIDER_NAMES, endpoints: endpointsOf(config, env) })
  return messages.map((message) => ({ path: 'pricingFile', message: `${file}: ${message}`, severity: 'warning' }))
}

/** Returns every problem of the content of a `pricingFile`. */
export function pricingProblems(bytes: Uint8Array): readonly string[] {
  const decoded = decodePricing(bytes)
  return 'problems' in decoded ? decoded.problems : []
}

/** Models and tools with and without a price, by the files that gateway.json names. */
export interface PriceCheck {
  /** The models of a route without a price, as `<provider>/<model>`. A route that forces no model has none here: any may be called. */
  unpriced(route: string): readonly string[]
  /** Whether some tool of a server `<namespace>/<name>` has a price; null: no tool of any server has one. */
  hasToolPrice(server: string): boolean | null
}

/** Returns null if the prices or the routes cannot be read: `checkFiles` reports why. Without a pricing file nothing has a price. */
export function checkPrices(config: GatewayConfig, env: NodeJS.ProcessEnv): PriceCheck | null {
  const bytes = contentOf(config.pricingFile)
  const decoded = bytes === null ? { table: noPrices } : decodePricing(bytes)
  const endpoints = endpointsOf(config, env)
  if ('problems' in decoded || endpoints === null) return null
  const { table } = decoded
  const aliases = aliasesOf(config)
  return {
    unpriced(route) {
      const models = endpoints
        .filter((endpoint) => endpoint.route === route)
        .flatMap(({ provider, priceScopes: scopes, modelFor }) =>
          [null, ...(aliases.get(route) ?? [])].flatMap((requested) => {
            const model = modelFor(requested)
            const key = `${provider}/${model}`
            return model === null || table.model({ key, scopes }) !== null ? [] : [key]
          }),
        )
      return [...new Set(models)]
    },
    hasToolPrice: (server) =>
      table.toolKeys.length === 0 ? null : table.toolKeys.some((key) => key.startsWith(`${server}/`)),
  }
}

/** Model names that agents may send, by route. */
function aliasesOf({ modelsFile, models }: GatewayConfig): ReadonlyMap<string, readonly string[]> {
  const routes = { ...models, ...routesIn(modelsFile)?.models }
  return new Map(Object.entries(routes).map(([name, { aliases = {} }]) => [name, Object.keys(aliases)]))
}

/** Every endpoint of every route; null when a file of routes cannot be read yet. */
function endpointsOf({ modelsFile, models, cloudCredentials }: GatewayConfig, env: NodeJS.ProcessEnv) {
  const { aws } = regional(cloudCredentials, env)
  const clouds = { awsRegion: aws.region, awsSuffix: aws.partitionDNSSuffix }
  if (modelsFile === '') return buildRoutes(null, models, clouds).endpoints
  const file = routesIn(modelsFile)
  return file === null ? null : buildRoutes(file, models, clouds).endpoints
}

function routesIn(modelsFile: string) {
  const bytes = contentOf(modelsFile)
  const decoded = bytes === null ? null : decodeModels(bytes)
  return decoded?.ok === true ? decoded.file : null
}

/** Null: there is none, or it cannot be read; a problem says so already. */
function contentOf(path: string): Uint8Array | null {
  if (path === '' || !existsSync(path)) return null
  try {
    return readFileSync(path)
  } catch {
    return null
  }
}
