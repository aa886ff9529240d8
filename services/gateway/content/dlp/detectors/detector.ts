import type { ScanState } from '../scan/scan-state.ts'

/** How a detector finds what it is for. Each way costs work in proportion to the text, whatever the text is. */
export interface Finder {
  /** Words that begin what is looked for; `find` is asked where one stands. */
  readonly anchors?: readonly string[]
  /** What is found begins with its anchor, and within a word. */
  readonly isInWords?: true
  /** Numbers whose first digits in a row are so many; `find` is asked where one begins. */
  readonly digits?: readonly number[]
  /** Words in which so many capital letters stand before the first digit; `find` is asked where one begins. */
  readonly letters?: readonly number[]
  /** `length`: of the anchor; 0 for numbers and words. */
  find?(look: ScanState, detector: Detector, at: number, length: number): void
  /** Asked once a text, after all places. */
  sweep?(look: ScanState, detector: Detector): void
  /** Asked at the end of a text that goes on: opens what may become a hit and no anchor tells of. */
  tail?(look: ScanState): void
}

/** One row of the table of detectors. */
export interface Detector {
  readonly id: string
  /** Credentials and keys are secrets; everything else is personal data. */
  readonly secret: boolean
  /** Whether a profile that names no detectors has it: only what is validated is. */
  readonly byDefault: boolean
  /** What it finds, in words for the reference. */
  readonly finds: string
  /** What makes sure that it is one. */
  readonly validated: string
  readonly finder: Finder
  /** Its place among the detectors of a profile: of two hits on the same text the first counts. */
  readonly place: number
}

/** A row as it is written down. */
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
