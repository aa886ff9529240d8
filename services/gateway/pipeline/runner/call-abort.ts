import {
  type AbortListener,
  type AbortReason,
  type CallSignal,
  type Denial,
  deny,
  type Ending,
} from '../../call/index.ts'

/** What `until` answers when the call was stopped before the work was done. */
export const aborted: unique symbol = Symbol('stopped')

const NO_LISTENERS: readonly AbortListener[] = []

/** The switch that ends a call from outside: once, with a reason, and seen at once by whatever the call waits for. */
export class CallAbort implements CallSignal {
  #listeners: readonly AbortListener[] = NO_LISTENERS
  /** Resolves what the call waits for, or waited for last: to wake what is awake does nothing. */
  #wake: ((value: typeof aborted) => void) | null = null
  reason: AbortReason | null = null
  /** What the caller is told; null when the caller left. */
  denial: Denial | null = null

  get aborted(): boolean {
    return this.reason !== null
  }

  /** There is one stop, so every listener hears at most once. Who comes after it hears nothing: ask `aborted` first. */
  addEventListener(_: 'abort', listener: AbortListener): void {
    if (this.reason !== null) return
    // Mostly there is one, and a list of one costs a quarter of a copy.
    this.#listeners = this.#listeners === NO_LISTENERS ? [listener] : [...this.#listeners, listener]
  }

  removeEventListener(_: 'abort', listener: AbortListener): void {
    const listeners = this.#listeners
    if (listeners.length === 1 && listeners[0] === listener) this.#listeners = NO_LISTENERS
    else this.#listeners = listeners.filter((one) => one !== listener)
  }

  /** The first reason counts. */
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
   * Waits for `work` or for the stop, whichever comes first. The runner waits for one thing at a time, so one place to
   * wake is enough; `Promise.race` against one long-lived promise would keep a reaction for every frame of a long stream.
   * What arrives after the stop goes to `late`, so that nothing that was taken stays taken; a late error has nobody to tell.
   */
  until<T>(work: PromiseLike<T>, late?: (value: T) => void): Promise<T | typeof aborted> {
    return new Promise((resolve, reject) => {
      this.#wake = resolve
      // What comes second does nothing to a promise, so where nobody asks for it nothing stands between.
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
   * Waits for the answer that `ask` lets somebody tell, or for the stop, as `until` does, but without a promise for the work: an answer
   * that comes after the stop is nobody's.
   */
  untilCalledBack<T>(start: (callback: (value: T) => void) => void): Promise<T | typeof aborted> {
    return new Promise((resolve) => {
      this.#wake = resolve
      if (this.reason !== null) this.#waken()
      start(resolve)
    })
  }

  /** False: the stop came first, and whoever waited has gone. */
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

/** How a call is over, and what its caller is still to be told. */
export interface CallEnd {
  readonly ending: Ending
  /** Null when the answer is complete, or nobody is there to read it. */
  readonly denial: Denial | null
}

export const completed: CallEnd = { ending: 'complete', denial: null }
/** Everything that came was delivered, but the upstream suspended its stream before the response. */
export const suspended: CallEnd = { ending: 'suspended', denial: null }
const callerLeft: CallEnd = { ending: 'client', denial: null }

/** A step or a review said no. */
export function refused(denial: Denial): CallEnd {
  return { ending: 'cut', denial }
}

/** The upstream, or the plane in front of it, failed. */
export function failed(denial: Denial): CallEnd {
  return { ending: 'died', denial }
}

/** The call was stopped from outside. */
export function abortedBy({ reason, denial }: CallAbort): CallEnd {
  return reason === 'client' ? callerLeft : refused(denial ?? deny('internal', 'the call was stopped'))
}
