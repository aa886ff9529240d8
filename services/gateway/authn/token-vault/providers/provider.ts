import { glob } from '@plat/core'
import * as oidc from 'openid-client'
import type { ProviderConfig } from '../config.ts'
import type { LoginTokens, Tokens } from '../store/account.ts'
import { isRefusal, OAuthClient, type Outside, type Refusal, refusal } from './client.ts'
import { IdentityAssertions, type LoginRenewal } from './id-jag.ts'
import { plainResponse } from './plain-response.ts'
import { presets } from './presets.ts'

/** One consent, from the redirect to the provider until the redirect back. */
export interface Consent {
  readonly state: string
  /** PKCE (RFC 7636). */
  readonly verifier: string
  readonly redirectURI: string
}

/** A provider where users connect accounts (docs/spec/gateway.md, `tokenVault.providers`). */
export class Provider {
  readonly name: string
  /** Display name. */
  readonly title: string
  readonly grant: ProviderConfig['grant']
  readonly scopes: readonly string[]
  readonly #config: ProviderConfig
  readonly #authParams: Readonly<Record<string, string>>
  readonly #client: OAuthClient
  readonly #outside: Outside
  /** Null: not needed by its grant. */
  readonly #assertions: IdentityAssertions | null
  readonly #servers: readonly ((key: string) => boolean)[]
  readonly #namespaces: ReadonlySet<string>

  /** `field`: its path in gateway.json. */
  constructor(config: ProviderConfig, field: string, outside: Outside & { readonly login: LoginRenewal }) {
    const preset = presets[config.preset](config)
    const client = new OAuthClient(
      {
        field,
        issuer: config.issuer,
        authorizationURL: config.grant === 'id-jag' ? null : config.authorizationURL || preset.authorizationURL,
        tokenURL: config.tokenURL || preset.tokenURL,
        revocationURL: config.revocationURL || preset.revocationURL,
        jwksURL: null,
        clientID: config.clientID,
        clientSecretFile: config.clientSecretFile,
        clientAuth: config.clientAuth,
        caFile: config.caFile,
        saysIssuer: config.issuer !== '',
        answers: plainResponse,
      },
      outside,
    )
    this.name = config.name
    this.title = preset.title
    this.grant = config.grant
    this.scopes = config.scopes
    this.#config = config
    this.#authParams = { ...preset.authParams, ...config.extraAuthParams }
    this.#client = client
    this.#outside = outside
    this.#assertions = config.grant === 'id-jag' ? new IdentityAssertions(config, { field, ...outside }) : null
    this.#servers = config.allowedServers.map(glob)
    this.#namespaces = new Set(config.allowedNamespaces)
  }

  /** Whether the server `<ns>/<name>` may receive its tokens. */
  serves(server: string): boolean {
    return this.#config.allowAnyServer || this.#servers.some((matches) => matches(server))
  }

  /** Whether agents of this namespace may use its tokens. */
  isFor(namespace: string): boolean {
    return this.#namespaces.size === 0 || this.#namespaces.has(namespace)
  }

  consentURL({ state, verifier, redirectURI }: Consent): Promise<URL | Refusal> {
    const { disablePKCE, resource } = this.#config
    return this.#client.request(async (client) => {
      const challenge = disablePKCE ? {} : await challengeOf(verifier)
      return oidc.buildAuthorizationUrl(client, {
        ...this.#authParams,
        redirect_uri: redirectURI,
        state,
        ...(this.scopes.length > 0 && { scope: this.scopes.join(' ') }),
        ...(resource !== '' && { resource }),
        ...challenge,
      })
    })
  }

  /** Exchanges the code of the redirect for tokens. `query`: as received. */
  redeem(query: string, { state, verifier, redirectURI }: Consent): Promise<Tokens | Refusal> {
    const { disablePKCE, issuer } = this.#config
    const came = new URL(`${redirectURI}?${query}`)
    // Without a configured issuer there is nothing to compare. Each provider has its own redirect URI, which prevents mix-up attacks.
    if (issuer === '') came.searchParams.delete('iss')
    return this.#tokens(null, (client) =>
      oidc.authorizationCodeGrant(
        client,
        came,
        { expectedState: state, ...(!disablePKCE && { pkceCodeVerifier: verifier }) },
        this.#resource(),
      ),
    )
  }

  /** First tokens of a user by an identity assertion (grant `id-jag`). */
  async vouched(login: LoginTokens): Promise<Tokens | Refusal> {
    if (this.#assertions === null) throw new Error(`provider ${this.name} does not have the grant id-jag`)
    const answer = await this.#assertions.assertionFor(login)
    if (isRefusal(answer)) return answer
    const scope = this.scopes.length > 0 ? { scope: this.scopes.join(' ') } : {}
    const parameters = { assertion: answer.assertion, ...scope, ...this.#resource() }
    const tokens = await this.#tokens(null, (client) => oidc.genericGrantRequest(client, JWT_BEARER, parameters))
    return isRefusal(tokens) ? tokens : { ...tokens, login: answer.login }
  }

  /** Whether tokens can be renewed without the user. */
  renews({ refreshToken, login }: Tokens): boolean {
    return refreshToken !== null || login !== null
  }

  /** Renews tokens. `invalid_grant`: the user must connect again. */
  async renew(tokens: Tokens): Promise<Tokens | Refusal> {
    const { refreshToken, login } = tokens
    if (refreshToken !== null) {
      return this.#tokens(tokens, (client) => oidc.refreshTokenGrant(client, refreshToken, this.#resource()))
    }
    return login === null ? refusal('invalid_grant', 'the provider gave no refresh token') : this.vouched(login)
  }

  /** Revokes the tokens at the provider (RFC 7009). Returns null if done or not supported. */
  async revoke({ refreshToken, accessToken }: Tokens): Promise<Refusal | null> {
    const answer = await this.#client.request(async (client) => {
      if (client.serverMetadata().revocation_endpoint === undefined) return {}
      if (refreshToken !== null) {
        await oidc.tokenRevocation(client, refreshToken, { token_type_hint: 'refresh_token' })
      }
      await oidc.tokenRevocation(client, accessToken, { token_type_hint: 'access_token' })
      return {}
    })
    return isRefusal(answer) ? answer : null
  }

  #resource(): Record<string, string> {
    const { resource } = this.#config
    return resource === '' ? {} : { resource }
  }

  async #tokens(
    before: Tokens | null,
    ask: (client: oidc.Configuration) => Promise<oidc.TokenEndpointResponse>,
  ): Promise<Tokens | Refusal> {
    const obtainedAt = this.#outside.clock.now()
    const answer = await this.#client.request(ask)
    if (isRefusal(answer)) return answer
    const { access_token: accessToken, expires_in: seconds, refresh_token: next, scope } = answer
    if (!BEARER.test(accessToken)) return refusal(null, 'the provider gave a token that no header can carry')
    return {
      accessToken,
      refreshToken: next ?? before?.refreshToken ?? null,
      expiresAt: seconds === undefined ? null : obtainedAt + Math.min(seconds, MAX_LIFE_SECONDS) * 1000,
      obtainedAt,
      scopes: scope === undefined ? [...(before?.scopes ?? this.scopes)] : scopesIn(scope),
      login: before?.login ?? null,
    }
  }
}

/** Maximum token lifetime, in seconds: ten years. Larger values of a provider may overflow dates. */
const MAX_LIFE_SECONDS = 10 * 365 * 86_400
/** RFC 7523. */
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
/** Access tokens that a header can carry: visible ASCII (RFC 6750), bounded. */
const BEARER = /^[\x21-\x7e]{1,16384}$/

async function challengeOf(verifier: string): Promise<Record<string, string>> {
  return {
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }
}

/** Separated by spaces (RFC 6749), or by commas (GitHub, Slack). */
function scopesIn(scope: string): string[] {
  return scope.split(/[ ,]+/).filter((word) => word !== '')
}
