import { type Bagged, type Clock, type PoolObservers, type SharedPool, SwapRemoveSet, watchedPool } from '@plat/core'
import { type AbortReason, callingAgentOf, type Denial, deny, type Identity } from '../call/index.ts'

/** A call in progress, as seen by code outside the runner. */
export interface LiveCall extends Bagged {
  readonly identity: Identity
  /** The call may last for hours, so a drain aborts it at once instead of waiting for it. */
  readonly long: boolean
  /** A drain aborts the call at once although it is not long; absent: it does not. */
  readonly endsAtDrain?: boolean
  /** The call frees resources, such as a cancellation, so it is counted in a separate pool: see `Plane.endsWork`. */
  readonly endsWork: boolean
  /** Aborts the call if its token has expired, its deadline has passed, or `still()` of a stage that admitted it returns a denial. */
  check(now: number, monotonic: number): void
  /** Aborts the call. Only the first abort has an effect. */
  stop(reason: AbortReason, denial: Denial | null): void
}

/** The calls in progress. Revocations, suspensions, expiry, new policies and drains abort waiting and streaming calls through it. */
export interface LiveCalls {
  /** Returns false when too many calls are in progress, in total or for the call's agent; the caller must then refuse the call. */
  add(call: LiveCall): boolean
  remove(call: LiveCall): void
  /** Aborts every call for which `judge` returns a denial. Returns how many. */
  cut(judge: (who: Identity) => Denial | null): number
  /** Calls `visit` with the identity of each call in progress, except long calls, which may be idle for hours. */
  busy(visit: (who: Identity) => void): void
  each(visit: (call: Pick<LiveCall, 'identity' | 'long'>) => void): void
  /** Checks every call now instead of at the next tick. */
  check(): void
  /** Aborts long calls and those with `endsAtDrain` at once, and all others after `waitMs`. Resolves when all have ended, or one second after the last abort. */
  drain(waitMs: number): Promise<void>
  readonly size: number
  /** Stops the shared timer. */
  close(): void
}

/** Milliseconds between checks: how long an expired call can continue at most. */
const CHECK_EVERY_MS = 250
/** Milliseconds that an aborted call has to write its last frames. */
export const FINAL_WRITE_MS = 1_000

const draining = deny('state_unavailable', 'the gateway is shutting down; call again')

/** One registry and one timer for all calls of a gateway. */
export function createLiveCalls(clock: Clock, pools?: PoolObservers<'live_calls' | 'ending_calls'>): LiveCalls {
  const calls = new SwapRemoveSet<LiveCall>()
  const poolOf = createPools(pools)
  let whenEmpty: (() => void) | null = null

  const check = () => {
    const now = clock.now()
    const monotonic = clock.monotonic()
    for (const call of calls) call.check(now, monotonic)
  }
  const stopTimer = clock.every(CHECK_EVERY_MS, check)
  const stopAll = (which: (call: LiveCall) => boolean) => {
    for (const call of calls) if (which(call)) call.stop('drain', draining)
  }
  const emptyWithin = (ms: number) =>
    new Promise<void>((resolve) => {
      if (calls.size === 0) return resolve()
      const cancel = clock.after(ms, resolve)
      whenEmpty = () => {
        cancel()
        resolve()
      }
    })

  return {
    add(call) {
      if (poolOf(call).acquire(callingAgentOf(call.identity)) !== null) return false
      calls.add(call)
      return true
    },
    remove(call) {
      if (calls.delete(call)) poolOf(call).release(callingAgentOf(call.identity))
      if (calls.size === 0) whenEmpty?.()
    },
    cut(judge) {
      let count = 0
      for (const call of calls) {
        const denial = judge(call.identity)
        if (denial === null) continue
        call.stop('revoked', denial)
        count++
      }
      return count
    },
    busy: (visit) => visitAll(calls, ({ long, identity }) => (long ? undefined : visit(identity))),
    each: (visit) => visitAll(calls, visit),
    check,
    async drain(waitMs) {
      stopAll((call) => call.long || call.endsAtDrain === true)
      await emptyWithin(waitMs)
      stopAll(() => true)
      await emptyWithin(FINAL_WRITE_MS)
    },
    get size() {
      return calls.size
    },
    close: stopTimer,
  }
}

function visitAll(calls: Iterable<LiveCall>, visit: (call: LiveCall) => void): void {
  for (const call of calls) visit(call)
}

function createPools(pools: PoolObservers<'live_calls' | 'ending_calls'> | undefined): (call: LiveCall) => SharedPool {
  const live = watchedPool({ name: 'live_calls', observer: pools?.of('live_calls') })
  const ending = watchedPool({ name: 'ending_calls', observer: pools?.of('ending_calls') })
  return ({ endsWork }) => (endsWork ? ending : live)
}
