import type { Clock, Ids } from '@plat/core'
import type { LedgerSegment } from '@plat/ledger'
import { EvidenceMaker, type MakerParts } from './make.ts'
import type { LedgerEvidence } from './routes.ts'
import { EvidenceStore } from './store.ts'

export { createEvidenceRoutes } from './routes.ts'

export interface EvidenceParts {
  readonly config: {
    readonly auditPath: string
    readonly evidence: { readonly dir: string; readonly maxBytes: number }
  }
  readonly checkpoints: MakerParts['checkpoints']
  readonly clock: Clock
  readonly ids: Ids
}

export interface Evidence extends LedgerEvidence {
  /** Returns which segments have records of an object: they stay. Rejects when an object cannot be read. */
  needs(segments: readonly LedgerSegment[]): Promise<(segment: LedgerSegment) => Promise<boolean>>
}

/** Evidence objects of one ledger (docs/spec/gateway.md, `evidence`): records with their proofs in one self-contained file. */
export function createEvidence(parts: EvidenceParts): Evidence {
  const { auditPath, evidence } = parts.config
  const store = new EvidenceStore(evidence.dir || `${auditPath}.evidence`)
  const maker = new EvidenceMaker({ ...parts, auditPath, maxBytes: evidence.maxBytes, store })
  return { maker, store, needs: (segments) => store.needs(segments) }
}
