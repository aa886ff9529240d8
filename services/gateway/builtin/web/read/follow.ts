import type { Clock } from '@plat/core'
import { type Dialer, type DialFault, dialFault, type FetchedHead, isDialError } from '@plat/http'
import { type CallSignal, type Denial, deny, type Outcome } from '../../../call/index.ts'
import type { DomainFilter } from '../domain-filter.ts'
import { ACCEPT_ENCODING, unpacked } from './decode.ts'

export interface FollowerOptions {
  /** Refuses addresses inside private networks, but for `web.allowedCIDRs`. */
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly maxRedirects: number
  readonly userAgent: string
}

/** One way from an address to what stands there. */
export interface Trip {
  readonly gate: DomainFilter
  readonly accept: string
  /** Of the body, as it comes and unpacked. */
  readonly maxBytes: number
  /** When it must be over, in milliseconds of the clock's `monotonic`. */
  readonly until: number
  readonly signal: CallSignal
  /** The caller whose share of connections and of name look-ups is used. */
  readonly caller?: string
  /** Every place that was asked. */
  readonly attempts: Outcome['attempts'][number][]
  /** Whether the body of an answer that is no redirect and no error will be used. */
  wants(head: FetchedHead): boolean
  /** Asked before each request; a string: why it must not be made. */
  before?(url: URL): Promise<string | null>
}

/** What stands at the end. */
export interface Arrived extends FetchedHead {
  readonly kind: 'arrived'
  readonly url: URL
  readonly bytes: Uint8Array
}

/** Why nothing was read, in words that a model can act on. */
export interface Failed {
  readonly kind: 'failed'
  readonly why: string
  /** The status that was no success; absent: there was none. */
  readonly status?: number
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Follows redirects, each of which passes everything that the first address passed. */
export class Follower {
  readonly #options: FollowerOptions

  constructor(options: FollowerOptions) {
    this.#options = options
  }

  /** Never rejects. A denial where the way leads to what must not be read. */
  async follow(start: URL, trip: Trip): Promise<Arrived | Failed | Denial> {
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
      if (target === null) return failed('it redirects to what is no URL')
      if (url.protocol === 'https:' && target.protocol === 'http:')
        return failed('it redirects from https to http, which is not followed')
      url = target
    }
    return failed(`it redirects more than ${this.#options.maxRedirects} times`)
  }

  async #arrived(answer: Arrived, { maxBytes }: Trip): Promise<Arrived | Failed> {
    const { status, headers } = answer
    if (status < 200 || status > 299) return { kind: 'failed', why: `it answered ${status}`, status }
    const bytes = await unpacked(answer.bytes, String(headers['content-encoding'] ?? ''), maxBytes)
    return typeof bytes === 'string' ? failed(bytes) : { ...answer, bytes }
  }

  async #ask(url: URL, trip: Trip): Promise<Arrived | DialFault> {
    const { dialer, clock, userAgent } = this.#options
    const { accept, maxBytes, until, signal, caller, attempts } = trip
    const started = clock.monotonic()
    const told = (status: number) => {
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
      told(answer.status)
      return { kind: 'arrived', url, ...answer }
    } catch (error) {
      if (!isDialError(error)) throw error
      told(0)
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

/** Nothing of where a redirect leads is told: those words would be a stranger's. */
function forbidden(redirects: number, fault: string): Denial {
  const what = redirects === 0 ? 'the address may not be read' : 'the page redirects to an address that may not be read'
  return deny('policy_denied', `${what}: ${fault}`)
}

function faultOf(fault: DialFault, redirects: number, maxBytes: number): Failed | Denial {
  switch (fault) {
    case 'blocked':
      return forbidden(redirects, 'it leads inside a private network, which web.allowedCIDRs does not allow')
    case 'residency':
      return deny('residency_denied', 'the page leads to where data must not go')
    case 'too_large':
      return failed(`it is larger than ${maxBytes} bytes`)
    case 'timeout':
      return failed('it was not read in time')
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
