import type { Clock, PoolObserver, SharedPool } from '@plat/core'
import { watchedPool } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { WebSocket } from 'ws'
import { AdminError, type Caller, may } from '../../admin/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Ending, ViewMode } from './endings.ts'
import type { ViewedSession, ViewName, ViewRecords } from './records.ts'
import { View } from './view.ts'

/** Logins, sessions and limits of all views are checked this often, in milliseconds. */
const CHECK_MS = 400
/** Viewers get a ping this often, in milliseconds. */
const PING_MS = 20_000

/** The role that a mode requires. */
const ROLES = { watch: 'auditor', control: 'admin' } as const

export interface ViewsOptions {
  readonly config: { readonly idleSeconds: number; readonly maxSeconds: number }
  readonly dialer: Pick<Dialer, 'connect'>
  readonly clock: Clock
  readonly records: ViewRecords
  /** Whether a session is revoked, suspended or has ended, or that is not known. */
  readonly hasStopped: (session: ViewedSession) => boolean
  readonly metrics: GatewayMetrics
  readonly observer?: PoolObserver | undefined
}

/** A place for a view, which must be released. */
export interface Place {
  release(): void
}

export interface NewView {
  readonly viewer: WebSocket
  readonly mode: ViewMode
  readonly url: URL
  readonly name: ViewName
  readonly caller: Caller
  readonly place: Place
}

interface OpenView {
  readonly view: View
  readonly mode: ViewMode
  readonly of: ViewedSession
  readonly caller: Caller
  /** Of the monotonic clock. */
  readonly begunAt: number
  pingedAt: number
  isChecking: boolean
}

/** All views of this gateway. Each ends at once when its session is revoked or its viewer may no longer see it. */
export class LiveViews {
  readonly #options: ViewsOptions
  readonly #open = new Set<OpenView>()
  readonly #pool: SharedPool
  readonly #stopChecking: () => void
  readonly #count: ReturnType<typeof countOf>
  #isLeaving = false
  /** Records of ends that are being written. */
  readonly #ending = new Set<Promise<void>>()

  constructor(options: ViewsOptions) {
    this.#options = options
    this.#pool = watchedPool({ name: 'live_views', observer: options.observer })
    this.#count = countOf(options.metrics)
    this.#stopChecking = options.clock.every(CHECK_MS, () => this.check())
  }

  /** Throws `rate_limited` if the caller, the session or all views together have reached their limit. */
  acquire(caller: Caller, { namespace, agent, session }: ViewedSession): Place {
    const holders = [`${namespace}/${agent}/${session}`, caller.by]
    const bound = this.#pool.acquire(holders)
    if (bound !== null) {
      const whose = bound === 'share' ? 'yours, or of this session' : 'of all callers'
      throw new AdminError('rate_limited', `too many views are open, ${whose}: close one`)
    }
    return { release: () => this.#pool.release(holders) }
  }

  /** Shows a sandbox until the view ends. */
  begin({ viewer, mode, url, name, caller, place }: NewView): void {
    const { clock, dialer } = this.#options
    const begunAt = clock.monotonic()
    const { of } = name
    const onEnd = (ending: Ending) => {
      this.#open.delete(open)
      place.release()
      this.#record(name, open, ending)
    }
    const view = new View({ viewer, mode, name: of.session, url, caller: caller.by, dialer, clock, onEnd })
    const open: OpenView = { view, mode, of, caller, begunAt, pingedAt: begunAt, isChecking: false }
    this.#open.add(open)
    // Whatever ends views may have happened while the begin was recorded.
    const ending = this.#isLeaving ? 'stopping' : this.#endingOf(open)
    if (ending === null) void view.open()
    else view.end(ending)
  }

  /** Ends the views that must end now. Called at intervals, and after each change of the revocations. */
  readonly check = (): void => {
    for (const open of [...this.#open]) {
      const ending = this.#endingOf(open)
      if (ending === null) void this.#checkLogin(open)
      else open.view.end(ending)
    }
  }

  /** Ends all views. */
  leave(): void {
    this.#isLeaving = true
    for (const { view } of [...this.#open]) view.end('stopping')
  }

  async close(): Promise<void> {
    this.#stopChecking()
    this.leave()
    await Promise.all(this.#ending)
  }

  /** Records and counts one page. */
  countPage(name: ViewName, result: Ending, bytesOut: number): Promise<void> {
    this.#count.inc({ mode: 'page', result })
    return this.#options.records.end(name, { result, bytesOut })
  }

  #endingOf(open: OpenView): Ending | null {
    const { config, clock, hasStopped } = this.#options
    const now = clock.monotonic()
    if (hasStopped(open.of)) return 'session_ended'
    if (now - open.begunAt >= config.maxSeconds * 1000) return 'time_limit'
    if (now - open.view.movedAt >= config.idleSeconds * 1000) return 'idle'
    if (now - open.pingedAt >= PING_MS) {
      open.pingedAt = now
      open.view.ping()
    }
    return null
  }

  async #checkLogin(open: OpenView): Promise<void> {
    if (open.isChecking) return
    open.isChecking = true
    const isAllowed = await mayStillView(open).catch(() => false)
    open.isChecking = false
    if (!isAllowed) open.view.end('login_ended')
  }

  #record(name: ViewName, { view, mode, begunAt }: OpenView, result: Ending): void {
    const { clock, records } = this.#options
    this.#count.inc({ mode, result })
    const ms = Math.round(clock.monotonic() - begunAt)
    const { bytesIn, bytesOut, inputs, dropped } = view
    const ended = records.end(name, { result, ms, bytesIn, bytesOut, inputs, dropped })
    this.#ending.add(ended)
    void ended.then(() => this.#ending.delete(ended))
  }
}

function countOf(metrics: GatewayMetrics) {
  return metrics.counter('plat_gateway_live_views_total')
}

/** Authenticates the caller again: its token may have expired, its login may have ended, and its namespace may be of another tenant. */
async function mayStillView({ caller, mode, of: { namespace, tenant } }: OpenView): Promise<boolean> {
  const principal = await caller.renew()
  return principal !== null && may(principal, ROLES[mode], namespace, tenant)
}
