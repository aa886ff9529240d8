import { type AuthEntry, isWrittenHeader } from '@plat/resources/rendered'
import type { UpstreamAuth } from '../../call/index.ts'

/** Reads `auth` of a registry entry. Returns a problem, starting with the member, if it is not complete and valid. */
export function authOf(entry: AuthEntry, url: string): UpstreamAuth | string {
  const { perUser = false, provider = '' } = entry
  const auth = typedAuth(entry, url)
  if (typeof auth === 'string') return auth
  if (!perUser) return provider === '' ? auth : '.provider: goes with perUser alone'
  if (provider === '') return required('provider')
  if (auth.type === 'none') return { type: 'perUser', provider, mtls: null }
  return auth.type === 'mtls'
    ? { type: 'perUser', provider, mtls: auth }
    : '.type: perUser goes with type none or mtls alone'
}

function typedAuth(entry: AuthEntry, url: string): Exclude<UpstreamAuth, { type: 'perUser' }> | string {
  const { type, credentialKey, headerName, oauth, tokenExchange } = entry
  if (type === 'none') return { type }
  if (type === 'tokenExchange') {
    return tokenExchange === undefined ? required('tokenExchange') : { type, audience: tokenExchange.audience }
  }
  if (credentialKey === undefined) return required('credentialKey')
  switch (type) {
    case 'bearerSecret':
      return { type, credentialKey }
    case 'headerSecret':
      if (headerName === undefined) return required('headerName')
      return isWrittenHeader(headerName)
        ? '.headerName: the gateway writes this header itself'
        : { type, credentialKey, headerName }
    case 'oauthClientCredentials': {
      if (oauth === undefined) return required('oauth')
      const { tokenURL, audience = '', resource = '', scopes = [] } = oauth
      if (!URL.canParse(tokenURL)) return '.oauth.tokenURL: not a URL'
      return {
        type,
        credentialKey,
        oauth: { tokenURL, audience: audience || null, resource: resource || null, scopes },
      }
    }
    case 'mtls':
      return url.startsWith('https://') ? { type, credentialKey } : '.type: mtls needs a url that begins with https://'
  }
}

function required(member: string): string {
  return `.${member}: Required value`
}
