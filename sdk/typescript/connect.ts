import { type Clock, systemIds } from '@plat/core'
import { waitingClock } from './clock.ts'
import { PlatError } from './error.ts'
import { Session } from './session.ts'
import { bootstrap } from './token/bootstrap.ts'
import { Exchanger } from './token/exchange.ts'
import { tokenFile } from './token/file.ts'
import { TokenKeeper } from './token/keeper.ts'
import { Prover } from './token/prover.ts'
import type { TokenSource } from './token/source.ts'

/** Every option defaults to the environment. */
export interface ConnectOptions {
  /** Default: `PLAT_GATEWAY_URL`, or the value from the bootstrap endpoint. */
  readonly gatewayURL?: string
  /** Public URL of the gateway (its `dpop.publicURL`), if agents call it by another one. Default: `PLAT_PUBLIC_URL`. */
  readonly publicURL?: string
  /** For `bind`, `exchange` and `delegate`. Default: `PLAT_IDENTITY_URL`. */
  readonly identityURL?: string
  /**
   * The source of tokens. Default: the file in `PLAT_TOKEN_FILE`; else the bootstrap endpoint in `PLAT_BOOTSTRAP_URL`; else none, if
   * `PLAT_GATEWAY_URL` is the forwarder of `plat run`.
   */
  readonly source?: TokenSource
  /** Binds every token to a key of this process, or to the given one (PKCS8 in PEM, Ed25519 or P-256). */
  readonly dpop?: boolean | { readonly privateKey: string }
  /** Aborts waiting for the first token. */
  readonly signal?: AbortSignal
  /** Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Default: the system clock. */
  readonly fetch?: typeof globalThis.fetch
  readonly clock?: Clock
}

/**
 * Returns the session of this process, after fetching its first token, so that configuration errors are reported here.
 *
 * @throws PlatError with the missing setting, TokenUnavailableError if there is no token.
 * @example
 * const session = await connect()
 * const client = new Client({ name: 'my-agent', version: '1.0.0' })
 * const { url, ...options } = session.mcp('notes')
 * await client.connect(new StreamableHTTPClientTransport(url, options))
 */
export async function connect(options: ConnectOptions = {}): Promise<Session> {
  const { env = process.env, fetch = globalThis.fetch, clock = waitingClock } = options
  const set = (name: string) => env[name] || undefined
  const identityURL = addressOf('identityURL', options.identityURL ?? set('PLAT_IDENTITY_URL'))
  const source = options.source ?? sourceIn(env, fetch)
  const given = addressOf('gatewayURL', options.gatewayURL ?? set('PLAT_GATEWAY_URL'))
  const parts = {
    publicURL: addressOf('publicURL', options.publicURL ?? set('PLAT_PUBLIC_URL')),
    identityURL,
    name: set('PLAT_SESSION') ?? null,
    fetch,
    clock,
  }
  if (source === null) {
    if (given === null) throw new PlatError('set PLAT_GATEWAY_URL, or give gatewayURL: the address of the gateway')
    if (!isForwarder(given)) throw new PlatError(NO_SOURCE)
    if (options.dpop) throw new PlatError('dpop: not possible with plat run, whose forwarder holds the token')
    return new Session({ ...parts, gatewayURL: given, keeper: null, route: routeIn(env, given) })
  }
  const keeper = keeperOf(source, { identityURL, fetch, clock, dpop: options.dpop ?? false })
  try {
    await keeper.current(options.signal ?? null)
    const gatewayURL = given ?? addressOf('gatewayURL', keeper.env.PLAT_GATEWAY_URL)
    if (gatewayURL === null) throw new PlatError('set PLAT_GATEWAY_URL, or give gatewayURL: the address of the gateway')
    return new Session({ ...parts, gatewayURL, keeper, route: null })
  } catch (error) {
    keeper.close()
    throw error
  }
}

const NO_SOURCE =
  'no source of session tokens: pass source, set PLAT_TOKEN_FILE or PLAT_BOOTSTRAP_URL, or start the agent with plat run'

function sourceIn(env: NonNullable<ConnectOptions['env']>, fetch: typeof globalThis.fetch): TokenSource | null {
  if (env.PLAT_TOKEN_FILE) return tokenFile(env.PLAT_TOKEN_FILE)
  if (!env.PLAT_BOOTSTRAP_URL) return null
  return bootstrap({ url: env.PLAT_BOOTSTRAP_URL, fetch })
}

interface KeeperParts {
  readonly identityURL: string | null
  readonly fetch: typeof globalThis.fetch
  readonly clock: Clock
  readonly dpop: boolean | { readonly privateKey: string }
}

function keeperOf(source: TokenSource, { identityURL, fetch, clock, dpop }: KeeperParts): TokenKeeper {
  const prover = dpop === false ? null : new Prover(clock, dpop === true ? undefined : dpop.privateKey)
  const ids = systemIds(clock)
  return new TokenKeeper(
    {
      source,
      clock,
      ids,
      bind(token, by, signal) {
        if (identityURL === null)
          throw new PlatError('to bind a token set PLAT_IDENTITY_URL, or give identityURL: the address of the broker')
        return new Exchanger({ identityURL, fetch, clock }).bind(token, by, signal)
      },
    },
    prover,
  )
}

/** The forwarder of `plat run` listens on loopback, and its path is a secret. */
function isForwarder(url: string): boolean {
  const { hostname, pathname } = new URL(url)
  return (hostname === '127.0.0.1' || hostname === 'localhost') && pathname.length > 1
}

/** The agent's model route, from the URL that `plat run` sets for OpenAI clients. */
function routeIn(
  { OPENAI_BASE_URL: base = '' }: NonNullable<ConnectOptions['env']>,
  gatewayURL: string,
): string | null {
  const [, route] = base.startsWith(`${gatewayURL}/llm/`) ? base.slice(gatewayURL.length).split('/llm/') : []
  return route?.replace(/\/v1\/?$/, '') || null
}

/** Returns the URL without a trailing slash, or null if it is not set. The error does not repeat it, since a URL of `plat run` is secret. */
function addressOf(name: string, text: string | undefined): string | null {
  if (text === undefined) return null
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol) || url.search + url.hash + url.username !== '')
    throw new PlatError(`${name} must be an http or https URL without query, fragment and user`)
  return url.href.replace(/\/$/, '')
}
