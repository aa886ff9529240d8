import { isObject, readBody, readJsonObject, reasonOf } from '@plat/core'
import { isLoopbackAddress } from '@plat/http'
import * as oauth from 'oauth4webapi'
import { CommandError, plain } from '../shared/output.ts'

/** Largest response of a provider, in bytes. */
const MAX_RESPONSE_BYTES = 1024 * 1024
/** How long a provider may take to respond, in milliseconds. */
const RESPONSE_MS = 15_000

/** The client of a gateway at its identity provider. It is public: a program on a laptop can keep no secret (RFC 8252, section 8.5). */
export interface ProviderClient {
  readonly issuer: string
  readonly clientID: string
  /** Audience that the gateway requires of tokens. */
  readonly audience: string
  /** Resource indicator (RFC 8707); null: none is sent. */
  readonly resource: string | null
}

/** Tokens for the admin API. */
export interface IssuedTokens {
  readonly token: string
  /** Milliseconds since the Unix epoch. */
  readonly expiresAt: number
  /** Null: the person has to log in again after `expiresAt`. */
  readonly refreshToken: string | null
}

/** An authorization code flow that waits for its redirect. */
export interface CodeFlow {
  /** The address that the browser opens. */
  readonly url: URL
  /**
   * Redeems the parameters of the redirect.
   * @throws WrongStateError if they are not of this flow, CommandError if the provider refused
   */
  redeem(parameters: URLSearchParams): Promise<IssuedTokens>
}

export interface DeviceFlow {
  readonly userCode: string
  readonly verificationURL: URL
  /** Contains the user code; null: the provider has no such address. */
  readonly completeURL: URL | null
  /** Between two polls, in seconds. */
  readonly intervalSeconds: number
  readonly expiresInSeconds: number
  /** Returns null while the person has not decided. `slowDown`: the provider requires longer intervals. */
  poll(): Promise<IssuedTokens | null | 'slowDown'>
}

/** Parameters of a redirect that do not belong to the flow: not the answer of the provider. */
export class WrongStateError extends Error {}

/** An OpenID provider, as its metadata describes it. */
export class Provider {
  readonly #client: ProviderClient
  readonly #server: oauth.AuthorizationServer

  private constructor(client: ProviderClient, server: oauth.AuthorizationServer) {
    this.#client = client
    this.#server = server
  }

  /** @throws CommandError if the metadata cannot be fetched, or is of another issuer */
  static async discover(client: ProviderClient): Promise<Provider> {
    const issuer = requireSecureURL(client.issuer, 'the issuer')
    return refusals(`the identity provider ${plain(client.issuer)} cannot be used`, async () => {
      const response = await oauth.discoveryRequest(issuer, { ...requestOptions(), algorithm: 'oidc' })
      return new Provider(client, await oauth.processDiscoveryResponse(issuer, response))
    })
  }

  /** Begins the flow of RFC 6749, section 4.1, with PKCE (RFC 7636). `redirectURL` is on the loopback interface (RFC 8252, section 7.3). */
  async codeFlow(redirectURL: string, scopes: readonly string[]): Promise<CodeFlow> {
    const endpoint = this.#server.authorization_endpoint
    if (endpoint === undefined)
      throw new CommandError('the identity provider has no authorization endpoint; use -device')
    const verifier = oauth.generateRandomCodeVerifier()
    const [state, nonce] = [oauth.generateRandomState(), oauth.generateRandomNonce()]
    const url = requireSecureURL(endpoint, 'the authorization endpoint')
    const parameters = {
      ...this.#scope(scopes),
      response_type: 'code',
      redirect_uri: redirectURL,
      state,
      nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    const redeem = async (given: URLSearchParams) => {
      if (given.get('state') !== state)
        throw new WrongStateError('the redirect does not belong to this login: its state differs')
      return this.#tokens('the login failed', async () => {
        const valid = oauth.validateAuthResponse(this.#server, this.#oauthClient, given, state)
        const response = await oauth.authorizationCodeGrantRequest(
          this.#server,
          this.#oauthClient,
          oauth.None(),
          valid,
          redirectURL,
          verifier,
          this.#requestOptions,
        )
        return oauth.processAuthorizationCodeResponse(this.#server, this.#oauthClient, response, {
          expectedNonce: nonce,
        })
      })
    }
    return { url, redeem }
  }

  /** Begins the flow of RFC 8628. */
  async deviceFlow(scopes: readonly string[]): Promise<DeviceFlow> {
    if (this.#server.device_authorization_endpoint === undefined)
      throw new CommandError(
        'the identity provider has no device authorization endpoint; use plat login without -device',
      )
    const begun = await refusals('the login failed', async () =>
      oauth.processDeviceAuthorizationResponse(
        this.#server,
        this.#oauthClient,
        await oauth.deviceAuthorizationRequest(
          this.#server,
          this.#oauthClient,
          oauth.None(),
          this.#scope(scopes),
          requestOptions(),
        ),
      ),
    )
    const { verification_uri_complete: complete } = begun
    return {
      userCode: begun.user_code,
      verificationURL: requireSecureURL(begun.verification_uri, 'the verification address'),
      completeURL: complete === undefined ? null : requireSecureURL(complete, 'the verification address'),
      intervalSeconds: begun.interval ?? DEVICE_INTERVAL_SECONDS,
      expiresInSeconds: begun.expires_in,
      poll: () => this.#pollDevice(begun.device_code),
    }
  }

  async #pollDevice(code: string): Promise<IssuedTokens | null | 'slowDown'> {
    return this.#tokens('the login failed', async () => {
      const given = [this.#server, this.#oauthClient, oauth.None(), code, this.#requestOptions] as const
      const response = await oauth.deviceCodeGrantRequest(...given)
      return oauth.processDeviceCodeResponse(this.#server, this.#oauthClient, response)
    }).catch((error: unknown) => {
      const cause = error instanceof Error ? error.cause : null
      const code = cause instanceof oauth.ResponseBodyError ? cause.error : ''
      if (code === 'authorization_pending') return null
      if (code === 'slow_down') return 'slowDown' as const
      throw error
    })
  }

  /** Redeems a refresh token. The provider may replace it. */
  async refresh(refreshToken: string): Promise<IssuedTokens> {
    const issued = await this.#tokens('the login cannot be refreshed; log in again with plat login', async () => {
      const given = [this.#server, this.#oauthClient, oauth.None(), refreshToken, this.#requestOptions] as const
      const response = await oauth.refreshTokenGrantRequest(...given)
      return oauth.processRefreshTokenResponse(this.#server, this.#oauthClient, response)
    })
    return { ...issued, refreshToken: issued.refreshToken ?? refreshToken }
  }

  /** Revokes a refresh token, and with it the tokens issued from it (RFC 7009). Returns false if the provider cannot. */
  async revoke(refreshToken: string): Promise<boolean> {
    if (this.#server.revocation_endpoint === undefined) return false
    await refusals('the identity provider did not revoke the login', async () => {
      const given = [this.#server, this.#oauthClient, oauth.None(), refreshToken, requestOptions()] as const
      await oauth.processRevocationResponse(await oauth.revocationRequest(...given))
    })
    return true
  }

  get #oauthClient(): oauth.Client {
    return { client_id: this.#client.clientID }
  }

  /** Options of requests to the token endpoint: each names the resource again (RFC 8707, section 2.2). */
  get #requestOptions(): oauth.TokenEndpointRequestOptions {
    const { resource } = this.#client
    return { ...requestOptions(), ...(resource !== null && { additionalParameters: { resource } }) }
  }

  #scope(scopes: readonly string[]): Record<string, string> {
    const { clientID, resource } = this.#client
    return { client_id: clientID, scope: scopes.join(' '), ...(resource !== null && { resource }) }
  }

  async #tokens(what: string, request: () => Promise<oauth.TokenEndpointResponse>): Promise<IssuedTokens> {
    const response = await refusals(what, request)
    const { access_token: access, id_token: id, refresh_token: refresh } = response
    const { audience } = this.#client
    const found = [access, id].find((token) => token !== undefined && isFor(audience, claimsOf(token)))
    if (found === undefined)
      throw new CommandError(
        `the identity provider issued no token for the audience ${plain(audience)} of the gateway; set adminAuth.oidc.resource, or add a scope ` +
          'with this audience to adminAuth.oidc.scopes',
      )
    const exp = claimsOf(found)?.exp
    if (typeof exp !== 'number' || !(exp > 0 && exp < MAX_EXPIRY_SECONDS))
      throw new CommandError('the identity provider issued a token without an expiry')
    return { token: found, expiresAt: exp * 1000, refreshToken: refresh ?? null }
  }
}

/** Latest expiry that is a date, in seconds since the Unix epoch: the year 5138. */
const MAX_EXPIRY_SECONDS = 1e11
/** RFC 8628, section 3.2. */
const DEVICE_INTERVAL_SECONDS = 5

/** Claims of a token, without verification: the gateway verifies it. Null for an opaque token. */
function claimsOf(token: string): Readonly<Record<string, unknown>> | null {
  const [, payload, signature] = token.split('.')
  return payload === undefined || signature === undefined ? null : readJsonObject(Buffer.from(payload, 'base64url'))
}

function isFor(audience: string, claims: Readonly<Record<string, unknown>> | null): boolean {
  const aud = claims?.aud
  return aud === audience || (Array.isArray(aud) && aud.includes(audience))
}

/**
 * An address that tokens or codes are sent to, or that a browser opens: https, or http on the loopback interface.
 * @throws CommandError
 */
export function requireSecureURL(text: string, what: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url !== null && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url)))) return url
  throw new CommandError(`${what} ${plain(text)} is not an https address; tokens are not sent to it`)
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || isLoopbackAddress(hostname.replace(/^\[|\]$/g, ''))
}

/** Plain http is limited by `requireSecureURL` and by the metadata, which is of the issuer's own origin or https. */
function requestOptions() {
  return {
    [oauth.customFetch]: fetchBounded,
    [oauth.allowInsecureRequests]: true,
    signal: AbortSignal.timeout(RESPONSE_MS),
  }
}

type FetchOptions = oauth.CustomFetchOptions<string, URLSearchParams | undefined>

async function fetchBounded(url: string, { body, ...options }: FetchOptions): Promise<Response> {
  const response = await fetch(requireSecureURL(url, 'the identity provider names'), {
    ...options,
    ...(body !== undefined && { body }),
  })
  const bytes = await readBody(response.body, MAX_RESPONSE_BYTES)
  if (bytes === null)
    throw new CommandError(`the response of ${new URL(url).origin} has more than ${MAX_RESPONSE_BYTES} bytes`)
  const { status, headers } = response
  return new Response(status === 204 ? null : Buffer.from(bytes), { status, headers })
}

/** Turns errors of the protocol into one line; tokens are in none of them. The cause stays for callers that poll. */
async function refusals<T>(what: string, job: () => Promise<T>): Promise<T> {
  try {
    return await job()
  } catch (error) {
    if (error instanceof CommandError) throw error
    const wrapped = new CommandError(`${what}: ${plain(explain(error))}`)
    wrapped.cause = error
    throw wrapped
  }
}

function explain(error: unknown): string {
  if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError)
    return [error.error, error.error_description].filter((part) => part !== undefined && part !== '').join(': ')
  const cause =
    error instanceof Error && isObject(error.cause) && 'code' in error.cause ? ` (${String(error.cause.code)})` : ''
  return `${reasonOf(error)}${cause}`
}
