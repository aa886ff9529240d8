import type { ModelEndpointEntry } from './rendered.ts'

/** Where tokens of the gateway's own identity in a cloud may go, by the provider or `<provider>/<mode>` that takes them. */
const DOMAINS: Readonly<Record<string, readonly string[]>> = {
  vertex: ['googleapis.com'],
  'anthropic/vertex': ['googleapis.com'],
  'azure-openai': ['azure.com', 'azure.us', 'azure.cn'],
}

/**
 * Why an endpoint that somebody other than the gateway's operator names must not be shown a token that the gateway's cloud lends it; null:
 * it may, or is shown none. Whoever gets such a token has it: unlike a signature it is good for every request.
 */
export function lentTokenFault(entry: Omit<ModelEndpointEntry, 'upstream'>, upstream: string): string | null {
  const { provider = 'openai', mode = '', apiKeyFile = '', auth } = entry
  const domains = DOMAINS[`${provider}/${mode}`] ?? DOMAINS[provider]
  const isOwn = apiKeyFile !== '' || auth?.type === 'none' || auth?.type === 'bearer'
  if (isOwn || domains === undefined) return null
  const url = URL.parse(upstream)
  const isWithin = domains.some((domain) => url?.hostname.endsWith(`.${domain}`))
  if (url?.protocol === 'https:' && isWithin) return null
  return `must be https below ${domains.join(' or ')}, since the gateway's own token goes there; else give the endpoint a key of its own`
}
