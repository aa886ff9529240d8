import {
  coversSegment,
  type HoldTarget,
  type Inspection,
  inspectSegment,
  type LedgerSegment,
  readLegalHolds,
  textOfTarget,
} from '@plat/ledger'

/** Returns which of these segments evidence needs. */
export type EvidenceNeeds = (
  segments: readonly LedgerSegment[],
) => Promise<(segment: LedgerSegment) => Promise<boolean>>

/** Result of an inspection, and for which sessions and agents it is known. */
interface Known extends Inspection {
  readonly searched: ReadonlySet<string>
}

/** Finds out which segments legal holds and evidence keep. A segment is read once for each set of sessions and agents. */
export class HeldSegments {
  readonly #auditPath: string
  readonly #evidence: EvidenceNeeds
  readonly #known = new Map<number, Known>()
  #targets: readonly HoldTarget[] = []
  #isEvidence: (segment: LedgerSegment) => Promise<boolean> = async () => true

  constructor(auditPath: string, evidence: EvidenceNeeds) {
    this.#auditPath = auditPath
    this.#evidence = evidence
  }

  /** Reads the holds in force and the evidence. Rejects when they cannot be read: then nothing may leave. `segments`: all that are sealed. */
  async load(segments: readonly LedgerSegment[]): Promise<void> {
    const holds = await readLegalHolds(this.#auditPath)
    this.#targets = holds.map(({ target }) => target)
    this.#isEvidence = await this.#evidence(segments)
  }

  /** Returns why a segment stays: it is held, or not what was sealed; null when neither. Verifies the whole segment. */
  async reasonToStay(
    segment: LedgerSegment,
    signal: AbortSignal,
  ): Promise<'held' | { readonly problem: string } | null> {
    if (this.#targets.some((target) => coversSegment(target, segment))) return 'held'
    if (await this.#isEvidence(segment)) return 'held'
    const { problem, found } = await this.#inspect(segment, signal)
    const current = new Set(this.#targets.map(textOfTarget))
    if (found.some((target) => current.has(target))) return 'held'
    return problem === null ? null : { problem }
  }

  /** Called when a segment left. */
  forget({ first }: LedgerSegment): void {
    this.#known.delete(first)
  }

  async #inspect({ first }: LedgerSegment, signal: AbortSignal): Promise<Inspection> {
    const targets = this.#targets.filter((target) => !('from' in target))
    const searched = new Set(targets.map(textOfTarget))
    const known = this.#known.get(first)
    if (known !== undefined && searched.isSubsetOf(known.searched)) return known
    const inspection = await inspectSegment({ ledgerPath: this.#auditPath, first, targets, signal })
    // A segment that is not held leaves at once, after it was read.
    if (!signal.aborted) this.#known.set(first, { ...inspection, searched })
    return inspection
  }
}
