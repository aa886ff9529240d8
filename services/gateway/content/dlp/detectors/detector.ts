import type { HitSource, ScanState } from '../scan/scan-state.ts'

/** Search strategy of a detector. Each takes time linear in the text. */
export interface Finder {
  /** Fixed prefixes; `find` is called at each occurrence. */
  readonly anchors?: readonly string[]
  /** Hits begin with their anchor, also within words. */
  readonly isInWords?: true
  /** Counts of leading digits; `find` is called at each number with one of them. */
  readonly digits?: readonly number[]
  /** Counts of capital letters before the first digit; `find` is called at each such word. */
  readonly letters?: readonly number[]
  /** `length`: that of the anchor; 0 for numbers and words. */
  find?(look: ScanState, detector: Detector, at: number, length: number): void
  /** Called once per text, after all other calls. */
  sweep?(look: ScanState, detector: Detector): void
  /** Called at the end of an incomplete text: opens possible hits without an anchor. */
  tail?(look: ScanState): void
}

/** One row of the table of detectors. */
export interface Detector extends HitSource {
  /** Whether it is active by default: only validated ones are. */
  readonly byDefault: boolean
  /** Description for the reference. */
  readonly finds: string
  /** Description of the validation. */
  readonly validated: string
  readonly finder: Finder
}

/** A table row. */
export type Row = Omit<Detector, 'place'>

/** A credential, found by default. */
export const secret = (id: string, finds: string, validated: string, finder: Finder): Row => ({
  id,
  secret: true,
  byDefault: true,
  finds,
  validated,
  finder,
})

/** Personal data, found by default. */
export const personal = (id: string, finds: string, validated: string, finder: Finder): Row => ({
  id,
  secret: false,
  byDefault: true,
  finds,
  validated,
  finder,
})
