import type { AlgorithmName } from '@plat/keys'

/** Providers that refuse an algorithm which others take, with what to do. Microsoft documents RS256 alone for Entra. */
const REFUSED: Readonly<Record<string, Partial<Record<AlgorithmName, string>>>> = {
  'azure-entra': { ES256: 'Microsoft Entra takes RS256 alone: use an RSA key' },
}

/** One warning for each provider in use that will refuse the assertions of a key with this algorithm. */
export function cloudWarnings(algorithm: AlgorithmName, providers: Iterable<string>): readonly string[] {
  return Array.from(new Set(providers)).flatMap((provider) => {
    const why = REFUSED[provider]?.[algorithm]
    return why === undefined ? [] : [`provider ${provider} refuses ${algorithm}: ${why} for -federation-key`]
  })
}
