import type { DlpAction, DlpDirection } from '../../call/index.ts'

/** Maximum number of detectors that a record names, each with its direction and action; hits of further ones are counted as `OTHERS`. */
const MAX_NAMED = 32

/** Not the id of a detector: those have letters, digits and `_`. */
const OTHERS = '*'

/** Hits of one detector in the records of a call, members in canonical order. */
export type DlpCount = {
  readonly action: DlpAction
  readonly count: number
  readonly detector: string
  readonly direction: DlpDirection
}

/** Counts the hits of data-loss prevention in one call, for its records. */
export class DlpTally {
  readonly #counts = new Map<string, { -readonly [member in keyof DlpCount]: DlpCount[member] }>()

  count(detector: string, direction: DlpDirection, action: DlpAction): void {
    const known = this.#counts.get(keyOf(detector, direction, action))
    if (known !== undefined) known.count++
    else if (this.#counts.size < MAX_NAMED || detector === OTHERS)
      this.#counts.set(keyOf(detector, direction, action), { action, count: 1, detector, direction })
    else this.count(OTHERS, direction, action)
  }

  /** Returns the counts, in the order of the first hits. */
  get counts(): readonly DlpCount[] {
    return [...this.#counts.values()].map((one) => ({ ...one }))
  }
}

function keyOf(detector: string, direction: DlpDirection, action: DlpAction): string {
  return `${direction} ${action} ${detector}`
}
