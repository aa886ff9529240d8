import {
  type AbortListener,
  type AbortReason,
  type CallSignal,
  type Denial,
  deny,
  type Ending,
} from '../../call/index.ts'

/** Returned by `until` when the call was aborted before the work was done. */
export const aborted: unique symbol = Symbol('stopped')

const NO_LISTENERS: readonly AbortListener[] = []

/** Aborts a call from outside, once, with a reason. Whatever the call awaits at that moment resolves at once. */
export class CallAbort implements CallSignal {
  #listeners: readonly AbortListener[] = NO_LISTENERS
  /** Resolves the promise that the call awaits, or awaited last: resolving it twice has no effect. */
  #wake: ((value: typeof aborted) => void) | null = null
  reason: AbortReason | null = null
  /** The refusal for the caller; null when the caller left. */
  denial: Denial | null = null

  get aborted(): boolean {
    return this.reason !== null
  }

  /** Each listener is called at most once, and never when it is added after the abort: check `aborted` first. */
  addEventListener(_: 'abort', listener: AbortListener): void {
    if (this.reason !== null) return
    // Most calls have one listener, and a literal costs a quarter of a copy.
    this.#listeners = this.#listeners === NO_LISTENERS ? [listener] : [...this.#listeners, listener]
  }

  removeEventListener(_: 'abort', listener: AbortListener): void {
    const listeners = this.#listeners
    if (listeners.length === 1 && listeners[0] === listener) this.#listeners = NO_LISTENERS
    else this.#listeners = listeners.filter((one) => one !== listener)
  }

  /** Aborts the call. Only the first abort has an effect. */
  stop(reason: AbortReason, denial: Denial | null): void {
    if (this.reason !== null) return
    this.reason = reason
    this.denial = denial
    const listeners = this.#listeners
    this.#listeners = NO_LISTENERS
    for (const listener of listeners) {
      if (typeof listener === 'function') listener()
      else listener.handleEvent()
    }
    this.#waken()
  }

  /**
   * Waits for `work` or the abort, whichever comes first. The runner awaits one promise at a time, so one resolver is
   * enough; `Promise.race` against one long-lived promise would retain a reaction for every frame of a long stream.
   * A value that arrives after the abort goes to `late`, which releases its resources; an error after the abort is ignored.
   */
  until<T>(work: PromiseLike<T>, late?: (value: T) => void): Promise<T | typeof aborted> {
    return new Promise((resolve, reject) => {
      this.#wake = resolve
      // Settling a promise twice has no effect, so without `late` no check is needed.
      if (late === undefined) work.then(resolve, reject)
      else
        work.then(
          (value) => (this.#leave(resolve) ? resolve(value) : late(value)),
          (error) => this.#leave(resolve) && reject(error),
        )
      if (this.reason !== null) this.#waken()
    })
  }

  /**
   * Waits for the value that is passed to the callback, or for the abort, as `until` does, but without a promise for the work. A value
   * that arrives after the abort is ignored.
   */
  untilCalledBack<T>(start: (callback: (value: T) => void) => void): Promise<T | typeof aborted> {
    return new Promise((resolve) => {
      this.#wake = resolve
      if (this.reason !== null) this.#waken()
      start(resolve)
    })
  }

  /** Returns false when the call was aborted first, so that no one awaits the value. */
  #leave(waiting: (value: typeof aborted) => void): boolean {
    if (this.#wake !== waiting) return false
    this.#wake = null
    return true
  }

  #waken(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.(aborted)
  }
}

/** How a call ended, and the refusal that must still be sent to its caller. */
export interface CallEnd {
  readonly ending: Ending
  /** Null when the response is complete, or the caller left. */
  readonly denial: Denial | null
}

export const completed: CallEnd = { ending: 'complete', denial: null }
/** All frames were delivered, but the upstream suspended its stream before the response. */
export const suspended: CallEnd = { ending: 'suspended', denial: null }
const callerLeft: CallEnd = { ending: 'client', denial: null }

/** A stage or a review denied the call. */
export function refused(denial: Denial): CallEnd {
  return { ending: 'cut', denial }
}

/** The upstream or its plane failed. */
export function failed(denial: Denial): CallEnd {
  return { ending: 'died', denial }
}

export function abortedBy({ reason, denial }: CallAbort): CallEnd {
  return reason === 'client' ? callerLeft : refused(denial ?? deny('internal', 'the call was stopped'))
}
