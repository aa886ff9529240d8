import type { Clock } from '@plat/core'
import { isFault, type Members, parseJws, readingClaims, userClaim } from '@plat/tokens'
import * as oidc from 'openid-client'
import type { LoginConfig } from '../config.ts'
import { isRefusal, OAuthClient, type Outside, type Refusal, refusal } from '../providers/client.ts'
import type { LoginRenewal } from '../providers/id-jag.ts'
import type { LoginTokens } from '../store/account.ts'

/** Remaining lifetime below which an ID token is replaced, in milliseconds. */
const ID_TOKEN_MARGIN_MS = 60_000

/** One login, from the redirect to the identity provider until the redirect back. */
export interface LoginFlow {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly redirectURI: string
}

export interface LoggedIn {
  readonly user: string
  readonly tokens: LoginTokens
}

/** OpenID Connect login before a user connects an account (docs/spec/gateway.md, `tokenVault.login`). */
export class Login implements LoginRenewal {
  readonly client: LoginRenewal['client']
  readonly issuer: string
  readonly caFile: string
  readonly #config: LoginConfig
  readonly #client: OAuthClient
  readonly #clock: Clock

  constructor(config: LoginConfig, outside: Outside) {
    const { issuer, caFile, clientID, clientSecretFile, authorizationURL, tokenURL, jwksURL } = config
    const { clock } = outside
    this.client = { tokenURL, clientID, clientSecretFile }
    this.issuer = issuer
    this.caFile = caFile
    this.#config = config
    this.#clock = clock
    const endpoints = { authorizationURL, tokenURL, jwksURL, revocationURL: '' }
    const own = { field: 'tokenVault.login', issuer, clientID, clientSecretFile, caFile }
    this.#client = new OAuthClient({ ...own, ...endpoints, clientAuth: 'basic', saysIssuer: false }, outside)
  }

  loginURL({ state, nonce, verifier, redirectURI }: LoginFlow): Promise<URL | Refusal> {
    const scopes = new Set(['openid', ...this.#config.scopes])
    return this.#client.request(async (client) =>
      oidc.buildAuthorizationUrl(client, {
        redirect_uri: redirectURI,
        scope: [...scopes].join(' '),
        // OpenID Connect Core, section 11: without it the scope is ignored.
        ...(scopes.has('offline_access') && { prompt: 'consent' }),
        state,
        nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      }),
    )
  }

  /** Verifies the redirect and the signature of its ID token. Returns the user. `query`: as received. */
  async identify(query: string, { state, nonce, verifier, redirectURI }: LoginFlow): Promise<LoggedIn | Refusal> {
    const came = new URL(`${redirectURI}?${query}`)
    const answer = await this.#client.request((client) => {
      oidc.enableNonRepudiationChecks(client)
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
      return oidc.authorizationCodeGrant(client, came, checks)
    })
    if (isRefusal(answer)) return answer
    const claims = answer.claims()
    const { id_token: idToken, refresh_token: refreshToken = null } = answer
    if (claims === undefined || idToken === undefined) return refusal(null, 'the login gave no ID token')
    const user = readingClaims(() => userClaim(claims, this.#config.usernameClaim))
    return typeof user === 'string' ? { user, tokens: { idToken, refreshToken } } : refusal(null, user.message)
  }

  async current(login: LoginTokens): Promise<LoginTokens | Refusal> {
    const { idToken, refreshToken } = login
    if (this.#clock.now() < endOf(idToken) - ID_TOKEN_MARGIN_MS) return login
    if (refreshToken === null) return refusal('invalid_grant', 'the login has expired')
    const answer = await this.#client.request((client) => {
      oidc.enableNonRepudiationChecks(client)
      return oidc.refreshTokenGrant(client, refreshToken)
    })
    if (isRefusal(answer)) return answer
    if (answer.id_token === undefined) return refusal(null, 'the login gave no ID token')
    // OpenID Connect Core, section 12.2.
    if (claimsOf(answer.id_token).sub !== claimsOf(idToken).sub) {
      return refusal('invalid_grant', 'the renewed login is for another user')
    }
    return { idToken: answer.id_token, refreshToken: answer.refresh_token ?? refreshToken }
  }
}

/** Of a token that was verified when it came. */
function claimsOf(idToken: string): Members {
  const jws = parseJws(idToken)
  return isFault(jws) ? {} : jws.payload
}

/** In milliseconds since the epoch. */
function endOf(idToken: string): number {
  const { exp } = claimsOf(idToken)
  return typeof exp === 'number' ? exp * 1000 : 0
}
