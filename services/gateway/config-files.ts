import { existsSync, readFileSync } from 'node:fs'
import type { Problem } from '@plat/config'
import type { GatewayConfig } from './config.ts'
import { decodePricing } from './decide/budgets/pricing/decode.ts'
import { unknownPriceKeys } from './decide/budgets/pricing/unknown.ts'
import { regional } from './targets/models/credentials/cloud.ts'
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

/** Every endpoint of every route; null when a file of routes cannot be read yet. */
function endpointsOf({ modelsFile, models, cloudCredentials }: GatewayConfig, env: NodeJS.ProcessEnv) {
  const { aws } = regional(cloudCredentials, env)
  const clouds = { awsRegion: aws.region, awsSuffix: aws.partitionDNSSuffix }
  if (modelsFile === '') return buildRoutes(null, models, clouds).endpoints
  const bytes = contentOf(modelsFile)
  const decoded = bytes === null ? null : decodeModels(bytes)
  return decoded?.ok === true ? buildRoutes(decoded.file, models, clouds).endpoints : null
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
