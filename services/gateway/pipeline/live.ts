import { type Bagged, type Clock, type PoolObservers, type SharedPool, SwapRemoveSet, watchedPool } from '@plat/core'
import { type AbortReason, callingAgentOf, type Denial, deny, type Identity } from '../call/index.ts'

/** A call under way, as far as others may reach into it. */
export interface LiveCall extends Bagged {
  readonly identity: Identity
  /** It does not end by itself: a drain does not wait for it. */
  readonly long: boolean
  /** It ends other work, so that it has room of its own: see `Plane.endsWork`. */
  readonly endsWork: boolean
  /** Asks whether the call may go on: token expiry, its deadline, and `still()` of what admitted it. Stops it if not. */
  check(now: number, monotonic: number): void
  /** The first stop counts. */
  stop(reason: AbortReason, denial: Denial | null): void
}

/** How a revocation, a suspension, an expiry, a new policy or a drain reaches a held or streaming call. */
export interface LiveCalls {
  /** Returns false when too many calls are under way, of all or of the call's agent: the call is refused. */
  add(call: LiveCall): boolean
  remove(call: LiveCall): void
  /** Stops every call that `judge` denies; answers how many. */
  cut(judge: (who: Identity) => Denial | null): number
  /** Tells whose calls are under way, but for those that may be open for hours while nothing happens. */
  busy(visit: (who: Identity) => void): void
  /** Asks every call now instead of at the next tick. */
  check(): void
  /** Cuts long calls at once, gives the others `waitMs` to end, then cuts them too. Resolves when all are gone, at most one second later. */
  drain(waitMs: number): Promise<void>
  readonly size: number
  /** Stops the shared timer. */
  close(): void
}

/** How long an expired or revoked call can go on unnoticed, in milliseconds. */
const CHECK_EVERY_MS = 250
/** How long a cut call has to write its last words, in milliseconds. */
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
    busy(visit) {
      for (const call of calls) if (!call.long) visit(call.identity)
    },
    check,
    async drain(waitMs) {
      stopAll((call) => call.long)
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

/** The pool that a call is counted in. */
function createPools(pools: PoolObservers<'live_calls' | 'ending_calls'> | undefined): (call: LiveCall) => SharedPool {
  const live = watchedPool({ name: 'live_calls', observer: pools?.of('live_calls') })
  const ending = watchedPool({ name: 'ending_calls', observer: pools?.of('ending_calls') })
  return ({ endsWork }) => (endsWork ? ending : live)
}
