import type { AlgorithmName } from '@plat/keys'
import type { Audiences } from '../exchange/config.ts'

/** Providers that refuse an algorithm which others take, with what to do. Microsoft documents RS256 alone for Entra. */
const REFUSED: Readonly<Record<string, Partial<Record<AlgorithmName, string>>>> = {
  'azure-entra': { ES256: 'Microsoft Entra takes RS256 alone: use an RSA key' },
}

/**
 * What to know before the first exchange: one warning for each provider in use that will refuse the assertions of a key with
 * this algorithm, and one for each audience whose credentials live longer than it says.
 */
export function cloudWarnings(algorithm: AlgorithmName, audiences: Audiences): readonly string[] {
  const refused = new Set<string>()
  const long: string[] = []
  for (const [name, { provider, params, maxTTLSeconds }] of audiences) {
    if (provider === null) continue
    const why = REFUSED[provider.name]?.[algorithm]
    if (why !== undefined) refused.add(`provider ${provider.name} refuses ${algorithm}: ${why} for -federation-key`)
    const least = provider.leastSeconds(params)
    if (least <= maxTTLSeconds) continue
    const where = `audiences[${JSON.stringify(name)}].maxTTLSeconds ${maxTTLSeconds}`
    long.push(
      `${where}: provider ${provider.name} gives no credential of less than ${least} s; expires_in states its life`,
    )
  }
  return [...refused, ...long]
}
