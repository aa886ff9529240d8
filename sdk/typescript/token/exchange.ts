import type { Clock } from '@plat/core'
import { ask, type BrokerConnection, type Members, textIn } from './ask.ts'
import type { Prover } from './prover.ts'
import { TokenUnavailableError } from './source.ts'

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const JWT = 'urn:ietf:params:oauth:token-type:jwt'
const TRANSACTION = 'urn:ietf:params:oauth:token-type:txn_token'

export interface ExchangeOptions {
  /** An audience of the broker's `-exchange-config`. */
  readonly audience: string
  /** Default: every scope of the session that the audience allows. */
  readonly scopes?: readonly string[]
  /** Shorter than the audience's maximum. */
  readonly ttlSeconds?: number
  readonly signal?: AbortSignal
}

/** The caller to act for: the header `Txn-Token` from the gateway, or the session token that the caller handed over. */
export type DelegateOptions = (
  | { readonly transaction: string; readonly session?: never }
  | { readonly session: string; readonly transaction?: never }
) & {
  /** Default: every scope of the acting agent. */
  readonly scopes?: readonly string[]
  readonly ttlSeconds?: number
  readonly signal?: AbortSignal
}

/** Result of an exchange. */
export interface Exchanged {
  /** A session token for the audience, or the cloud credential: for `aws-sts` the JSON of a `credential_process`. */
  readonly token: string
  readonly scopes: readonly string[]
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** The broker's exchange endpoint (RFC 8693) for one session. */
export class Exchanger {
  readonly #options: { readonly identityURL: string; readonly fetch: typeof globalThis.fetch; readonly clock: Clock }

  constructor(options: {
    readonly identityURL: string
    readonly fetch: typeof globalThis.fetch
    readonly clock: Clock
  }) {
    this.#options = options
  }

  /** Exchanges the session's token for one of another audience, or for a cloud credential. */
  exchange(token: string, wanted: ExchangeOptions, prover: Prover | null): Promise<Exchanged> {
    return this.#ask(
      { subject_token: token, subject_token_type: JWT, audience: wanted.audience, ...narrowed(wanted) },
      prover,
      wanted.signal,
    )
  }

  /** Exchanges the session's token and that of the caller for a delegated token. */
  delegate(token: string, wanted: DelegateOptions, prover: Prover | null): Promise<Exchanged> {
    const [subject, type] = wanted.transaction === undefined ? [wanted.session, JWT] : [wanted.transaction, TRANSACTION]
    const parameters = { subject_token: subject, subject_token_type: type, actor_token: token, actor_token_type: JWT }
    return this.#ask({ ...parameters, ...narrowed(wanted) }, prover, wanted.signal)
  }

  /** Returns the same token, bound to the prover's key. The first bind of a token wins. */
  async bind(token: string, prover: Prover, signal: AbortSignal): Promise<string> {
    const url = `${this.#options.identityURL}/v1/token/bind`
    const headers = { authorization: `Bearer ${token}`, dpop: prover.proof({ method: 'POST', url, token }) }
    return textIn(await ask({ fetch: this.#options.fetch, url, headers, signal }), 'token')
  }

  async #ask(
    parameters: Readonly<Record<string, string>>,
    prover: Prover | null,
    signal: AbortSignal | undefined,
  ): Promise<Exchanged> {
    const url = `${this.#options.identityURL}/v1/exchange`
    const proof = prover === null ? {} : { dpop: prover.proof({ method: 'POST', url, token: null }) }
    const body = new URLSearchParams({ grant_type: GRANT, ...parameters })
    const asking: BrokerConnection = { fetch: this.#options.fetch, url, headers: proof, body }
    return this.#read(await ask(signal === undefined ? asking : { ...asking, signal }))
  }

  #read(answer: Members): Exchanged {
    const { expires_in: seconds, scope } = answer
    if (typeof seconds !== 'number')
      throw new TokenUnavailableError('the response of the identity broker has no expires_in')
    const scopes = typeof scope === 'string' ? scope.split(' ').filter((one) => one !== '') : []
    return { token: textIn(answer, 'access_token'), scopes, expiresAt: this.#options.clock.now() + seconds * 1000 }
  }
}

function narrowed({ scopes, ttlSeconds }: { readonly scopes?: readonly string[]; readonly ttlSeconds?: number }) {
  return {
    ...(scopes !== undefined && { scope: scopes.join(' ') }),
    ...(ttlSeconds !== undefined && { requested_ttl_seconds: String(ttlSeconds) }),
  }
}
