import type { Resource } from '@plat/resources'
import type { Reconcile } from '../controllers/controller.ts'
import { keyOf } from '../render/declared.ts'
import { type RevocationEntry, renderRevocationsWithinShares } from '../render/limits/revocations.ts'
import type { Mirror } from './mirror.ts'
import { configMapOf, type Outputs } from './outputs.ts'

/** How often they are rendered again, in milliseconds: those of ended sessions expire, and others may have changed what was written. */
const LOOK_AGAIN_MS = 30_000

const NAME = configMapOf('revocations.json')

export interface RevocationsParts {
  readonly mirror: Mirror
  readonly outputs: Outputs
  /** The operator's own namespace. */
  readonly namespace: string
  readonly ended: () => readonly RevocationEntry[]
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Called once the revocations are written. */
  readonly onWritten: (revocations: WrittenRevocations) => void
}

/** The entries in force, with their objects. */
export interface WrittenRevocations {
  /** By `<namespace>/<name>`. */
  readonly objects: ReadonlyMap<string, Resource>
  readonly refused: readonly string[]
}

/** The reconciler that writes who may not call. It reads nothing and waits for nothing else, so that no other output delays it. */
export function createRevocations({ mirror, outputs, namespace, ended, now, onWritten }: RevocationsParts): Reconcile {
  return async (_key, signal) => {
    const declared = mirror.list('AgentRevocation')
    const parts = { home: namespace, ended: ended(), now: now() }
    const { packed, refused } = await renderRevocationsWithinShares(declared, parts)
    const failed = await outputs.attempt(NAME, signal, () => outputs.configMap(NAME, packed, signal))
    if (failed !== null) throw failed.error
    onWritten({ objects: new Map(declared.map((one) => [keyOf(one), one])), refused })
    return { requeueAfterMs: LOOK_AGAIN_MS }
  }
}
