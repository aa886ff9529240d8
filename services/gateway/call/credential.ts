/** How the gateway authenticates to a server (docs/spec/crds.md, `auth.type`; registry entry `auth`). */
export type UpstreamAuth =
  | { readonly type: 'none' }
  | { readonly type: 'bearerSecret'; readonly credentialKey: string }
  | { readonly type: 'headerSecret'; readonly credentialKey: string; readonly headerName: string }
  | { readonly type: 'oauthClientCredentials'; readonly credentialKey: string; readonly oauth: OAuthGrant }
  | { readonly type: 'tokenExchange'; readonly audience: string }
  | MtlsAuth
  /** The token of the account that the calling user connected at a provider (`auth.perUser`), optionally with a client certificate. */
  | { readonly type: 'perUser'; readonly provider: string; readonly mtls: MtlsAuth | null }

/** A client certificate. */
export interface MtlsAuth {
  readonly type: 'mtls'
  readonly credentialKey: string
}

/** A client credentials grant (RFC 6749, section 4.4). */
export interface OAuthGrant {
  readonly tokenURL: string
  readonly audience: string | null
  /** RFC 8707. */
  readonly resource: string | null
  readonly scopes: readonly string[]
}

/** Credential of one request to its server. The object is the same as long as its content is. Never logged. */
export interface Credential {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly clientCert: { readonly certPEM: string; readonly keyPEM: string } | null
}

/** For servers of type `none`. */
export const NO_CREDENTIAL: Credential = { headers: {}, clientCert: null }
