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

/** Everything may be left out where the environment tells it. */
export interface ConnectOptions {
  /** Default: `PLAT_GATEWAY_URL`, or what the bootstrap endpoint tells. */
  readonly gatewayURL?: string
  /** The gateway as its `dpop.publicURL` and the cards of agents name it, where agents call it by another address. Default: `PLAT_PUBLIC_URL`. */
  readonly publicURL?: string
  /** For `bind`, `exchange` and `delegate`. Default: `PLAT_IDENTITY_URL`. */
  readonly identityURL?: string
  /**
   * Where tokens come from. Default: the file of `PLAT_TOKEN_FILE`; else the bootstrap endpoint of `PLAT_BOOTSTRAP_URL`; else none, where
   * `PLAT_GATEWAY_URL` is the forwarder of `plat run`.
   */
  readonly source?: TokenSource
  /** Binds every token to a key of this process, or to the given one (PKCS8 in PEM, Ed25519 or P-256). */
  readonly dpop?: boolean | { readonly privateKey: string }
  /** Gives up waiting for the first token. */
  readonly signal?: AbortSignal
  /** Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Default: the machine's. */
  readonly fetch?: typeof globalThis.fetch
  readonly clock?: Clock
}

/**
 * The session that this process is: with its first token, so that what is wrong is told here.
 *
 * @throws PlatError naming what is not set, TokenUnavailableError when there is no token.
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
    if (options.dpop) throw new PlatError('dpop: the forwarder of plat run shows the token, and it alone could bind it')
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
  'nothing tells where the session token comes from: give source, set PLAT_TOKEN_FILE or PLAT_BOOTSTRAP_URL, or start the agent with plat run'

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
      random: () => (ids.random(1)[0] ?? 0) / 256,
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

/** The agent's own model route, out of the address that `plat run` sets for the client of OpenAI. */
function routeIn(
  { OPENAI_BASE_URL: base = '' }: NonNullable<ConnectOptions['env']>,
  gatewayURL: string,
): string | null {
  const [, route] = base.startsWith(`${gatewayURL}/llm/`) ? base.slice(gatewayURL.length).split('/llm/') : []
  return route?.replace(/\/v1\/?$/, '') || null
}

/** Without a slash at its end; null: not given. The message does not repeat it, since an address of `plat run` is a secret. */
function addressOf(name: string, text: string | undefined): string | null {
  if (text === undefined) return null
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol) || url.search + url.hash + url.username !== '')
    throw new PlatError(`${name} must be an http or https URL without query, fragment and user`)
  return url.href.replace(/\/$/, '')
}
