/** The sealed segments of a ledger, or their list, could not be read. */
export class SegmentListError extends Error {}

/** The content of a sealed segment cannot be read. */
export class SegmentDamagedError extends SegmentListError {
  /** Its file. */
  readonly path: string
  readonly what: string

  constructor(path: string, what: string) {
    super(`${path} ${what}: restore it from a copy with \`plat audit repair <ledger> -from <copy>\``)
    this.path = path
    this.what = what
  }
}
