import * as oidc from 'openid-client'
import type { Person } from '../../admin/index.ts'

/** Where the flow of one login is: sealed into `state`, and bound to the browser. */
export interface LoginFlow {
  readonly state: string
  readonly nonce: string
  /** PKCE (RFC 7636). */
  readonly verifier: string
  readonly redirectURI: string
  /** Requested `acr_values`; empty: any. */
  readonly acr: string
  /** Requested `max_age` in seconds; null: any. */
  readonly maxAge: number | null
}

/** Why a login failed; without secrets, tokens or text of the identity provider. */
export interface LoginFailure {
  readonly kind: 'failure'
  /** `denied`: the person or the provider refused; `failed`: anything else. */
  readonly code: 'denied' | 'failed'
  readonly why: string
}

interface Refusal {
  readonly kind: 'refusal'
  readonly code: string | null
  readonly why: string
}

/** Sends requests to an authorization server; never rejects. */
export interface OAuthRequests {
  request<T>(operation: (configuration: oidc.Configuration) => Promise<T>): Promise<T | Refusal>
}

export interface LoginOptions {
  readonly oauth: OAuthRequests
  /** Identifies a person by a token for the admin API; anything without `user` is a refusal. */
  readonly identify: (token: string) => Promise<Person | { readonly kind: 'fault' }>
  readonly scopes: readonly string[]
  /** RFC 8707; empty: none. */
  readonly resource: string
}

/** Logs people in by the authorization code flow with PKCE (OpenID Connect Core, section 3.1). */
export class Login {
  readonly #options: LoginOptions

  constructor(options: LoginOptions) {
    this.#options = options
  }

  /** Returns the address at the identity provider. */
  async url({ state, nonce, verifier, redirectURI, acr, maxAge }: LoginFlow): Promise<URL | LoginFailure> {
    const { oauth, scopes, resource } = this.#options
    // A session of the console is not refreshed.
    const requested = new Set(['openid', ...scopes.filter((scope) => scope !== 'offline_access')])
    const url = await oauth.request(async (client) =>
      oidc.buildAuthorizationUrl(client, {
        redirect_uri: redirectURI,
        scope: [...requested].join(' '),
        state,
        nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...(resource !== '' && { resource }),
        ...(acr !== '' && { acr_values: acr }),
        ...(maxAge !== null && { max_age: String(maxAge) }),
      }),
    )
    return url instanceof URL ? url : failureOf(url)
  }

  /** Redeems the redirect (`query` as received) and returns the person, by the same rules as for a bearer token of the admin API. */
  async person(
    query: string,
    { state, nonce, verifier, redirectURI, maxAge }: LoginFlow,
  ): Promise<Person | LoginFailure> {
    const { oauth, resource } = this.#options
    const answer = await oauth.request((client) => {
      oidc.enableNonRepudiationChecks(client)
      return oidc.authorizationCodeGrant(
        client,
        new URL(`${redirectURI}?${query}`),
        {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
          ...(maxAge !== null && { maxAge }),
        },
        resource === '' ? {} : { resource },
      )
    })
    if (isRefusal(answer)) return failureOf(answer)
    const claims = answer.claims()
    if (claims === undefined || answer.id_token === undefined) return failed('the identity provider issued no ID token')
    const person = await this.#identified([answer.access_token, answer.id_token])
    if (person === null)
      return failed(
        'the identity provider issued no token for adminAuth.oidc.audience: set adminAuth.oidc.resource, or add a scope with this audience',
      )
    if (person.known?.subject != null && person.known.subject.subject !== claims.sub)
      return failed('the tokens name different people')
    const { acr, amr, auth_time: at } = claims
    const auth = {
      acr: typeof acr === 'string' ? acr : null,
      amr: Array.isArray(amr) ? amr.filter((method) => typeof method === 'string') : [],
      at: typeof at === 'number' ? at : null,
    }
    return { ...person, auth }
  }

  /** The first token that the admin API would accept. */
  async #identified(tokens: readonly string[]): Promise<Person | null> {
    for (const token of tokens) {
      const person = await this.#options.identify(token)
      if (!('kind' in person)) return person
    }
    return null
  }
}

function isRefusal(value: object): value is Refusal {
  return 'kind' in value && value.kind === 'refusal'
}

function failureOf({ code, why }: { readonly code: string | null; readonly why: string }): LoginFailure {
  return { kind: 'failure', code: code === 'access_denied' ? 'denied' : 'failed', why }
}

function failed(why: string): LoginFailure {
  return { kind: 'failure', code: 'failed', why }
}
