import type { Clock } from '@plat/core'
import { type Dialer, type DialFault, dialFault, type FetchedHead, isDialError } from '@plat/http'
import { type CallSignal, type Denial, deny, type Outcome } from '../../../call/index.ts'
import type { DomainFilter } from '../domain-filter.ts'
import { ACCEPT_ENCODING, unpacked } from './decode.ts'

export interface FollowerOptions {
  /** Blocks private networks, except for `web.allowedCIDRs`. */
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly maxRedirects: number
  readonly userAgent: string
}

/** Parameters of one fetch with its redirects. */
export interface Trip {
  readonly gate: DomainFilter
  readonly accept: string
  /** Maximum body size, compressed and decompressed. */
  readonly maxBytes: number
  /** Deadline, in milliseconds of the clock's `monotonic`. */
  readonly until: number
  readonly signal: CallSignal
  /** Caller for its share of connections and DNS lookups. */
  readonly caller?: string
  /** All attempted requests. */
  readonly attempts: Outcome['attempts'][number][]
  /** Returns whether the body of a successful response is needed. */
  wants(head: FetchedHead): boolean
  /** Called before each request; returns why it must not be made, or null. */
  before?(url: URL): Promise<string | null>
}

/** The final response. */
export interface FetchedPage extends FetchedHead {
  readonly kind: 'arrived'
  readonly url: URL
  readonly bytes: Uint8Array
}

/** Why nothing was read, in words that a model can act on. */
export interface Failed {
  readonly kind: 'failed'
  readonly why: string
  /** The error status, if there was a response. */
  readonly status?: number
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Follows redirects; each target is checked like the first URL. */
export class Follower {
  readonly #options: FollowerOptions

  constructor(options: FollowerOptions) {
    this.#options = options
  }

  /** Never rejects. Returns a denial if a target is not allowed. */
  async follow(start: URL, trip: Trip): Promise<FetchedPage | Failed | Denial> {
    let url = start
    for (let redirects = 0; redirects <= this.#options.maxRedirects; redirects++) {
      const fault = trip.gate.fault(url)
      if (fault !== null) return forbidden(redirects, fault)
      const no = (await trip.before?.(url)) ?? null
      if (no !== null) return failed(no)
      const answer = await this.#ask(url, trip)
      if (typeof answer === 'string') return faultOf(answer, redirects, trip.maxBytes)
      const next = redirectOf(answer)
      if (next === null) return this.#arrived(answer, trip)
      const target = URL.parse(next, url)
      if (target === null) return failed('it redirects to an invalid URL')
      if (url.protocol === 'https:' && target.protocol === 'http:')
        return failed('it redirects from https to http, which is not followed')
      url = target
    }
    return failed(`it redirects more than ${this.#options.maxRedirects} times`)
  }

  async #arrived(answer: FetchedPage, { maxBytes }: Trip): Promise<FetchedPage | Failed> {
    const { status, headers } = answer
    if (status < 200 || status > 299) return { kind: 'failed', why: `status ${status}`, status }
    const bytes = await unpacked(answer.bytes, String(headers['content-encoding'] ?? ''), maxBytes)
    return typeof bytes === 'string' ? failed(bytes) : { ...answer, bytes }
  }

  async #ask(url: URL, trip: Trip): Promise<FetchedPage | DialFault> {
    const { dialer, clock, userAgent } = this.#options
    const { accept, maxBytes, until, signal, caller, attempts } = trip
    const started = clock.monotonic()
    const record = (status: number) => {
      attempts.push({ endpoint: url.origin, status, ms: clock.monotonic() - started })
    }
    if (started >= until) return 'timeout'
    try {
      const answer = await dialer.fetchBytes(url, 'web', {
        maxBytes,
        timeoutMs: until - started,
        headers: { 'user-agent': userAgent, accept, 'accept-encoding': ACCEPT_ENCODING },
        wants: (head) => redirectOf(head) === null && head.status >= 200 && head.status <= 299 && trip.wants(head),
        signal,
        ...(caller !== undefined && { caller }),
      })
      record(answer.status)
      return { kind: 'arrived', url, ...answer }
    } catch (error) {
      if (!isDialError(error)) throw error
      record(0)
      return dialFault(error)
    }
  }
}

function redirectOf({ status, headers }: FetchedHead): string | null {
  return REDIRECTS.has(status) ? (headers.location ?? null) : null
}

function failed(why: string): Failed {
  return { kind: 'failed', why }
}

/** Reveals nothing of a redirect's target: its text is not trusted. */
function forbidden(redirects: number, fault: string): Denial {
  const what = redirects === 0 ? 'the address is not allowed' : 'the page redirects to an address that is not allowed'
  return deny('policy_denied', `${what}: ${fault}`)
}

function faultOf(fault: DialFault, redirects: number, maxBytes: number): Failed | Denial {
  switch (fault) {
    case 'blocked':
      return forbidden(redirects, 'it leads inside a private network, which web.allowedCIDRs does not allow')
    case 'residency':
      return deny('residency_denied', 'the page is in a jurisdiction that is not allowed')
    case 'too_large':
      return failed(`it is larger than ${maxBytes} bytes`)
    case 'timeout':
      return failed('it timed out')
    case 'name':
      return failed('its host cannot be found')
    case 'refused':
      return failed('its host cannot be reached')
    case 'tls':
      return failed('the certificate of its host is not accepted')
    case 'aborted':
      return failed('the call was stopped')
    default:
      return failed('its host broke the connection')
  }
}
