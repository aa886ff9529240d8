import { type Clock, type PoolObserver, poolTable } from '@plat/core'
import type { Ledger } from '@plat/ledger'
import { nameIn } from './session-name.ts'

/** Refusals of one caller that the ledger records one by one in each window. */
export const RECORDED_PER_WINDOW = poolTable.recorded_refusals.shares[0].max
/** Length of a window, in milliseconds. */
const WINDOW_MS = 60_000
/** Callers that are counted apart in a window; the rest are counted together. */
const CALLERS_MAX = 10_000
/** The key of callers beyond `CALLERS_MAX`; no caller has it. */
const OTHERS = ''

export interface RefusalSharesOptions {
  readonly ledger: Ledger
  readonly clock: Clock
  readonly observer?: PoolObserver | undefined
  /** Called when the count of a window cannot be recorded. */
  readonly onLost: () => void
}

interface Tally {
  recorded: number
  skipped: number
}

/**
 * Gives each caller a share of the refusals in the ledger, so that none can fill the disk with its own. What is above the share is
 * counted, and recorded as one number at the end of the window.
 */
export class RefusalShares {
  readonly #ledger: Ledger
  readonly #clock: Clock
  readonly #observer: PoolObserver | undefined
  readonly #onLost: () => void
  #tallies = new Map<string, Tally>()
  #cancel: (() => void) | null = null

  constructor({ ledger, clock, observer, onLost }: RefusalSharesOptions) {
    this.#ledger = ledger
    this.#clock = clock
    this.#observer = observer
    this.#onLost = onLost
  }

  /** Returns whether this refusal of `caller` is recorded by itself. */
  admit(caller: string): boolean {
    this.#cancel ??= this.#clock.after(WINDOW_MS, () => this.#endWindow())
    const isKnown = this.#tallies.has(caller) || this.#tallies.size < CALLERS_MAX
    const tally = this.#tallies.getOrInsertComputed(isKnown ? caller : OTHERS, () => ({ recorded: 0, skipped: 0 }))
    if (tally.recorded < RECORDED_PER_WINDOW) {
      tally.recorded++
      return true
    }
    tally.skipped++
    this.#observer?.refused('share')
    return false
  }

  /** Records what is still counted; before the ledger is closed. */
  close(): void {
    this.#cancel?.()
    this.#endWindow()
  }

  #endWindow(): void {
    this.#cancel = null
    const tallies = this.#tallies
    this.#tallies = new Map()
    for (const [caller, { skipped }] of tallies) if (skipped > 0) this.#record(caller, skipped)
  }

  #record(caller: string, skipped: number): void {
    const reason = `${skipped} refusals not recorded individually`
    // With the session's name, so that auditors of its namespace learn of what is missing.
    const who = caller === OTHERS ? {} : { sub: caller, ...nameIn(caller) }
    this.#ledger
      .append({ kind: 'decision', op: 'identity.refusals', action: 'deny', reason, count: skipped, ...who })
      .catch(this.#onLost)
  }
}
