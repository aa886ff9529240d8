import { readText } from '@plat/config'
import { type Clock, checkJson, JsonError } from '@plat/core'
import { type Dialer, dialFault, joinedBundles } from '@plat/http'
import * as oidc from 'openid-client'

/** Timeout of one request to an authorization server (connect, headers and body), in milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000
/** Maximum response of an authorization server, in bytes. */
const MAX_RESPONSE_BYTES = 256 * 1024
/** Cache lifetime of discovery documents, in milliseconds. */
const DISCOVERED_MS = 10 * 60_000
/** Maximum size of a client secret or CA bundle file, in bytes. */
const MAX_FILE_BYTES = 256 * 1024
/** OAuth error codes. Other texts of a server are never repeated. */
const ERROR_CODE = /^[a-z0-9_.]{1,64}$/

/** Statuses without a response body (Fetch standard). */
const BODILESS: ReadonlySet<number> = new Set([101, 204, 205, 304])

/** One client at one authorization server. Empty endpoints are discovered at the issuer. */
export interface ClientSettings {
  /** Path of its field in gateway.json, for messages. */
  readonly field: string
  readonly issuer: string
  /** Null: no authorization requests. */
  readonly authorizationURL: string | null
  readonly tokenURL: string
  readonly revocationURL: string
  /** Null: no signatures are verified. */
  readonly jwksURL: string | null
  readonly clientID: string
  /** Read for each request, so that a new secret applies at once; empty: a public client. */
  readonly clientSecretFile: string
  readonly clientAuth: 'post' | 'basic'
  readonly caFile: string
  /** Whether the redirect must contain `iss` (RFC 9207). */
  readonly saysIssuer: boolean
  /** Rewrites responses of the token endpoint. */
  readonly answers?: (status: number, bytes: Uint8Array) => { readonly status: number; readonly bytes: Uint8Array }
}

/** Network access and clock. */
export interface Outside {
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  /** Additional CA bundle for every server; null: none. */
  readonly extraCA: string | null
}

/** Failure of a request to an authorization server. */
export interface Refusal {
  readonly kind: 'refusal'
  /** OAuth error code, such as `invalid_grant`; null: no response or an invalid one. */
  readonly code: string | null
  /** Reason without secrets, tokens or free text of the server. */
  readonly why: string
}

export function refusal(code: string | null, why: string): Refusal {
  return { kind: 'refusal', code, why }
}

export function isRefusal(value: object): value is Refusal {
  return 'kind' in value && value.kind === 'refusal'
}

/** A client of `openid-client` that sends every request through the guarded dialer. */
export class OAuthClient {
  readonly #settings: ClientSettings
  readonly #outside: Outside
  #discovered: { readonly metadata: oidc.ServerMetadata; readonly until: number } | null = null
  /** Shared by concurrent callers, so that many clicks cause one request. */
  #discovering: Promise<oidc.ServerMetadata> | null = null

  constructor(settings: ClientSettings, outside: Outside) {
    this.#settings = settings
    this.#outside = outside
  }

  /** Runs an operation with the current configuration. Never rejects. */
  async request<T>(operation: (configuration: oidc.Configuration) => Promise<T>): Promise<T | Refusal> {
    try {
      return await operation(await this.#configuration())
    } catch (error) {
      return refusalOf(error)
    }
  }

  async #configuration(): Promise<oidc.Configuration> {
    const { field, clientID, clientSecretFile, clientAuth, caFile } = this.#settings
    const secret = clientSecretFile === '' ? null : await fileText(`${field}.clientSecretFile`, clientSecretFile)
    const own = caFile === '' ? null : await fileText(`${field}.caFile`, caFile)
    const fetch = this.#fetch(joinedBundles([own, this.#outside.extraCA]))
    const auth =
      secret === null
        ? oidc.None()
        : clientAuth === 'basic'
          ? oidc.ClientSecretBasic(secret)
          : oidc.ClientSecretPost(secret)
    const configuration = new oidc.Configuration(await this.#metadata(fetch), clientID, undefined, auth)
    configuration[oidc.customFetch] = fetch
    oidc.allowInsecureRequests(configuration)
    return configuration
  }

  async #metadata(fetch: oidc.CustomFetch): Promise<oidc.ServerMetadata> {
    const { issuer, authorizationURL, tokenURL, revocationURL, jwksURL, saysIssuer } = this.#settings
    const isWhole = tokenURL !== '' && authorizationURL !== '' && jwksURL !== ''
    const found = isWhole ? null : await this.#discover(fetch)
    return {
      ...found,
      issuer: found?.issuer ?? (issuer || new URL(tokenURL).origin),
      ...(saysIssuer && isWhole && { authorization_response_iss_parameter_supported: true }),
      ...(isWhole && { id_token_signing_alg_values_supported: ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'] }),
      ...(authorizationURL && { authorization_endpoint: authorizationURL }),
      ...(tokenURL && { token_endpoint: tokenURL }),
      ...(revocationURL && { revocation_endpoint: revocationURL }),
      ...(jwksURL && { jwks_uri: jwksURL }),
    }
  }

  #discover(fetch: oidc.CustomFetch): oidc.ServerMetadata | Promise<oidc.ServerMetadata> {
    const { clock } = this.#outside
    if (this.#discovered !== null && clock.now() < this.#discovered.until) return this.#discovered.metadata
    this.#discovering ??= this.#look(fetch).finally(() => {
      this.#discovering = null
    })
    return this.#discovering
  }

  /** Fetches the OpenID document, or the one of RFC 8414. */
  async #look(fetch: oidc.CustomFetch): Promise<oidc.ServerMetadata> {
    const { issuer, clientID } = this.#settings
    const found = (algorithm: 'oidc' | 'oauth2') =>
      oidc.discovery(new URL(issuer), clientID, undefined, oidc.None(), {
        algorithm,
        execute: [oidc.allowInsecureRequests],
        [oidc.customFetch]: fetch,
      })
    const configuration = await found('oidc').catch((error: unknown) => {
      if (isInvalidJson(error)) throw error
      return found('oauth2')
    })
    const metadata = configuration.serverMetadata()
    this.#discovered = { metadata, until: this.#outside.clock.now() + DISCOVERED_MS }
    return metadata
  }

  #fetch(caPEM: string | null): oidc.CustomFetch {
    const { dialer } = this.#outside
    const { answers = (status: number, bytes: Uint8Array) => ({ status, bytes }) } = this.#settings
    return async (url, { method, headers, body }) => {
      const isPost = method === 'POST'
      const fetched = await dialer.fetchBytes(url, 'jwks', {
        method: isPost ? 'POST' : 'GET',
        headers: { ...headers, 'user-agent': 'plat-gateway' },
        ...(isPost && { body: String(body ?? '') }),
        ...(caPEM !== null && { caPEM }),
        maxBytes: MAX_RESPONSE_BYTES,
        timeoutMs: REQUEST_TIMEOUT_MS,
      })
      const { status, bytes } = isPost ? answers(fetched.status, fetched.bytes) : fetched
      const type = fetched.headers['content-type']
      // Lenient parsers differ on duplicate members and invalid UTF-8, so both are rejected in metadata and tokens.
      if (/^application\/(?:[\w.-]+\+)?json/i.test(type ?? '')) checkJson(bytes)
      return new Response(BODILESS.has(status) ? null : new Uint8Array(bytes), {
        status,
        headers: type === undefined ? {} : { 'content-type': type },
      })
    }
  }
}

/** A configured file is unusable. The message names its field. */
class FileError extends Error {}

async function fileText(field: string, path: string): Promise<string> {
  const text = (await readText(path, MAX_FILE_BYTES))?.trim() ?? ''
  if (text === '') throw new FileError(`${field} is missing, empty or unreadable`)
  return text
}

function refusalOf(error: unknown): Refusal {
  if (isInvalidJson(error)) return refusal(null, 'the authorization server sent invalid JSON')
  if (error instanceof FileError) return refusal(null, error.message)
  if (error instanceof oidc.AuthorizationResponseError || error instanceof oidc.ResponseBodyError) {
    const code = ERROR_CODE.test(error.error) ? error.error : null
    return refusal(code, `the authorization server returned ${code ?? 'an unknown error'}`)
  }
  if (error instanceof oidc.ClientError) {
    const { cause, code } = error
    if (cause instanceof Error && code === undefined) return refusal(null, silence(cause))
    return refusal(null, `refused the response of the authorization server (${code ?? 'unreadable'})`)
  }
  return refusal(null, silence(error))
}

/** The client library wraps errors of its fetch. */
function isInvalidJson(error: unknown): boolean {
  return error instanceof JsonError || (error instanceof Error && error.cause instanceof JsonError)
}

function silence(error: unknown): string {
  return `the authorization server did not respond (${dialFault(error)})`
}
