import { glob } from '@plat/core'
import * as oidc from 'openid-client'
import type { ProviderConfig } from '../config.ts'
import type { LoginTokens, Tokens } from '../store/account.ts'
import { isRefusal, OAuthClient, type Outside, type Refusal, refusal } from './client.ts'
import { IdentityAssertions, type LoginRenewal } from './id-jag.ts'
import { plainAnswer } from './plain-response.ts'
import { presets } from './presets.ts'

/** One request for consent, between the redirect to the provider and the one back. */
export interface Consent {
  readonly state: string
  /** PKCE (RFC 7636). */
  readonly verifier: string
  readonly redirectURI: string
}

/** A place where users connect their accounts (docs/spec/gateway.md, `tokenVault.providers`). */
export class Provider {
  readonly name: string
  /** As people call it. */
  readonly title: string
  readonly grant: ProviderConfig['grant']
  readonly scopes: readonly string[]
  readonly #config: ProviderConfig
  readonly #authParams: Readonly<Record<string, string>>
  readonly #client: OAuthClient
  readonly #outside: Outside
  /** Null: its grant needs none. */
  readonly #assertions: IdentityAssertions | null
  readonly #servers: readonly ((key: string) => boolean)[]
  readonly #namespaces: ReadonlySet<string>

  /** `field`: where it stands in gateway.json. */
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
        answers: plainAnswer,
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

  /** Whether the server `<ns>/<name>` may see its tokens. */
  serves(server: string): boolean {
    return this.#config.allowAnyServer || this.#servers.some((matches) => matches(server))
  }

  /** Whether agents of this namespace may use its tokens. */
  isFor(namespace: string): boolean {
    return this.#namespaces.size === 0 || this.#namespaces.has(namespace)
  }

  /** Where a browser asks its user for consent. */
  consentURL({ state, verifier, redirectURI }: Consent): Promise<URL | Refusal> {
    const { disablePKCE, resource } = this.#config
    return this.#client.ask(async (client) => {
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

  /** The tokens for what came back by the redirect: `query` as it was sent. */
  redeem(query: string, { state, verifier, redirectURI }: Consent): Promise<Tokens | Refusal> {
    const { disablePKCE, issuer } = this.#config
    const came = new URL(`${redirectURI}?${query}`)
    // Whose issuer nobody has configured cannot be compared; each provider has a redirect of its own, which tells them apart.
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

  /** The first tokens of a user whom the identity provider vouches for (grant `id-jag`). */
  async vouched(login: LoginTokens): Promise<Tokens | Refusal> {
    if (this.#assertions === null) throw new Error(`provider ${this.name} has another grant`)
    const answer = await this.#assertions.assertionFor(login)
    if (isRefusal(answer)) return answer
    const scope = this.scopes.length > 0 ? { scope: this.scopes.join(' ') } : {}
    const parameters = { assertion: answer.assertion, ...scope, ...this.#resource() }
    const tokens = await this.#tokens(null, (client) => oidc.genericGrantRequest(client, JWT_BEARER, parameters))
    return isRefusal(tokens) ? tokens : { ...tokens, login: answer.login }
  }

  /** Whether tokens can be got without their user. */
  renews({ refreshToken, login }: Tokens): boolean {
    return refreshToken !== null || login !== null
  }

  /** The next tokens. `invalid_grant`: there are no more to be had. */
  async renew(tokens: Tokens): Promise<Tokens | Refusal> {
    const { refreshToken, login } = tokens
    if (refreshToken !== null) {
      return this.#tokens(tokens, (client) => oidc.refreshTokenGrant(client, refreshToken, this.#resource()))
    }
    return login === null ? refusal('invalid_grant', 'the provider gave no refresh token') : this.vouched(login)
  }

  /** Tells the provider to forget the tokens (RFC 7009). Null: it has, or it takes no such thing. */
  async revoke({ refreshToken, accessToken }: Tokens): Promise<Refusal | null> {
    const answer = await this.#client.ask(async (client) => {
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
    const answer = await this.#client.ask(ask)
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

/** A token that lives longer is as good as this, in seconds: ten years. What a provider says beyond may be no time at all. */
const MAX_LIFE_SECONDS = 10 * 365 * 86_400
/** RFC 7523. */
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
/** Longest access token that a header carries; in visible ASCII (RFC 6750). */
const BEARER = /^[\x21-\x7e]{1,16384}$/

async function challengeOf(verifier: string): Promise<Record<string, string>> {
  return {
    code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }
}

/** Separated by spaces (RFC 6749), or by commas as GitHub and Slack write them. */
function scopesIn(scope: string): string[] {
  return scope.split(/[ ,]+/).filter((word) => word !== '')
}
