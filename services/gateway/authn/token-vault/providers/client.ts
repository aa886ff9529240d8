import { readText } from '@plat/config'
import { type Clock, checkJson, JsonError } from '@plat/core'
import { type Dialer, dialFault, joinedBundles } from '@plat/http'
import * as oidc from 'openid-client'

/** Deadline of one request to an authorization server: connection, head and body, in milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000
/** Largest answer of an authorization server, in bytes. */
const MAX_ANSWER_BYTES = 256 * 1024
/** How long a discovered document is used, in milliseconds. */
const DISCOVERED_MS = 10 * 60_000
/** Largest file with a client secret or a CA bundle, in bytes. */
const MAX_FILE_BYTES = 256 * 1024
/** Error codes of OAuth; whatever else a server says is not repeated. */
const ERROR_CODE = /^[a-z0-9_.]{1,64}$/

/** Statuses whose answers have no body (Fetch standard). */
const BODILESS: ReadonlySet<number> = new Set([101, 204, 205, 304])

/** One client at one authorization server. Empty endpoints are discovered at the issuer. */
export interface ClientSettings {
  /** The field of gateway.json that it stands in, for messages. */
  readonly field: string
  readonly issuer: string
  /** Null: nobody is asked there. */
  readonly authorizationURL: string | null
  readonly tokenURL: string
  readonly revocationURL: string
  /** Null: nothing that it signs is read. */
  readonly jwksURL: string | null
  readonly clientID: string
  /** Read for each request, so that a new secret counts at once; empty: a public client. */
  readonly clientSecretFile: string
  readonly clientAuth: 'post' | 'basic'
  readonly caFile: string
  /** The redirect must say the issuer (RFC 9207). */
  readonly saysIssuer: boolean
  /** Rewrites the answers of the token endpoint. */
  readonly answers?: (status: number, bytes: Uint8Array) => { readonly status: number; readonly bytes: Uint8Array }
}

/** The way out, and the time. */
export interface Outside {
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  /** CA bundle for every server; null: none. */
  readonly extraCA: string | null
}

/** What an authorization server would not do. */
export interface Refusal {
  readonly kind: 'refusal'
  /** Of OAuth, such as `invalid_grant`; null: there was no answer, or one that makes no sense. */
  readonly code: string | null
  /** In words that hold no secret, no token and nothing that the server says freely. */
  readonly why: string
}

export function refusal(code: string | null, why: string): Refusal {
  return { kind: 'refusal', code, why }
}

export function isRefusal(value: object): value is Refusal {
  return 'kind' in value && value.kind === 'refusal'
}

/** A client of `openid-client` whose every request goes through the guarded dialer. */
export class OAuthClient {
  readonly #settings: ClientSettings
  readonly #outside: Outside
  #discovered: { readonly metadata: oidc.ServerMetadata; readonly until: number } | null = null
  /** One request looks, however many wait: strangers may click as well. */
  #discovering: Promise<oidc.ServerMetadata> | null = null

  constructor(settings: ClientSettings, outside: Outside) {
    this.#settings = settings
    this.#outside = outside
  }

  /** Does something with the client as it is configured now. Never rejects. */
  async ask<T>(what: (configuration: oidc.Configuration) => Promise<T>): Promise<T | Refusal> {
    try {
      return await what(await this.#configuration())
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

  /** OpenID's document, or else that of RFC 8414. */
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
        maxBytes: MAX_ANSWER_BYTES,
        timeoutMs: REQUEST_TIMEOUT_MS,
      })
      const { status, bytes } = isPost ? answers(fetched.status, fetched.bytes) : fetched
      const type = fetched.headers['content-type']
      // Lenient parsers differ on duplicate members and invalid UTF-8, so neither metadata nor a token may have them.
      if (/^application\/(?:[\w.-]+\+)?json/i.test(type ?? '')) checkJson(bytes)
      return new Response(BODILESS.has(status) ? null : new Uint8Array(bytes), {
        status,
        headers: type === undefined ? {} : { 'content-type': type },
      })
    }
  }
}

/** The file cannot be used: a mistake of ours, told by its field. */
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
    return refusal(code, `the authorization server answered ${code ?? 'an error of its own'}`)
  }
  if (error instanceof oidc.ClientError) {
    const { cause, code } = error
    if (cause instanceof Error && code === undefined) return refusal(null, silence(cause))
    return refusal(null, `the answer of the authorization server is refused (${code ?? 'unreadable'})`)
  }
  return refusal(null, silence(error))
}

/** The client library wraps what its fetch throws. */
function isInvalidJson(error: unknown): boolean {
  return error instanceof JsonError || (error instanceof Error && error.cause instanceof JsonError)
}

function silence(error: unknown): string {
  return `the authorization server gave no answer (${dialFault(error)})`
}
