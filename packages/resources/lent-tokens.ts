/** Domains that may receive tokens of the gateway's cloud identity, by provider or `<provider>/<mode>`. */
const DOMAINS: Readonly<Record<string, readonly string[]>> = {
  vertex: ['googleapis.com'],
  'anthropic/vertex': ['googleapis.com'],
  'azure-openai': ['azure.com', 'azure.us', 'azure.cn'],
}

/** Members of a model endpoint that determine its credential. */
interface EndpointAuth {
  readonly provider?: string
  readonly mode?: string
  readonly apiKeyFile?: string
  readonly auth?: { readonly type?: string }
}

/**
 * Returns why an endpoint not configured by the gateway's operator must not receive a token of the gateway's cloud; null when it may, or receives
 * none. Unlike a signature, such a token is valid for any request of its holder.
 */
export function lentTokenFault(entry: EndpointAuth, upstream: string): string | null {
  const { provider = 'openai', mode = '', apiKeyFile = '', auth } = entry
  const domains = DOMAINS[`${provider}/${mode}`] ?? DOMAINS[provider]
  const isOwn = apiKeyFile !== '' || auth?.type === 'none' || auth?.type === 'bearer'
  if (isOwn || domains === undefined) return null
  const url = URL.parse(upstream)
  const isWithin = domains.some((domain) => url?.hostname.endsWith(`.${domain}`))
  if (url?.protocol === 'https:' && isWithin) return null
  return `must be https below ${domains.join(' or ')}, since the gateway's own token goes there; otherwise set a separate key for the endpoint`
}
