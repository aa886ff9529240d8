import type { Resource } from '@plat/resources'
import type { Reconcile } from '../controllers/controller.ts'
import { keyOf } from '../render/declared.ts'
import { type RevocationEntry, renderRevocations } from '../render/limits/revocations.ts'
import type { Mirror } from './mirror.ts'
import { configMapOf, type Outputs } from './outputs.ts'

/** How often they are rendered again, in milliseconds: those of ended sessions expire, and others may have changed what was written. */
const LOOK_AGAIN_MS = 30_000

export interface RevocationsParts {
  readonly mirror: Mirror
  readonly outputs: Outputs
  /** The operator's own namespace. */
  readonly namespace: string
  /** Revocations of sessions that have ended. */
  readonly ended: () => readonly RevocationEntry[]
  /** Called once the revocations are written. */
  readonly onWritten: (revocations: WrittenRevocations) => void
}

/** What is in force, and what it was made from. */
export interface WrittenRevocations {
  /** By `<namespace>/<name>`. */
  readonly objects: ReadonlyMap<string, Resource>
  readonly refused: readonly string[]
}

/** The reconciler that writes who may not call. It reads nothing and waits for nothing else, so that no other output delays it. */
export function createRevocations({ mirror, outputs, namespace, ended, onWritten }: RevocationsParts): Reconcile {
  const file = 'revocations.json'
  return async (_key, signal) => {
    const declared = mirror.list('AgentRevocation')
    const rendered = renderRevocations(declared, namespace, ended())
    const name = configMapOf(file)
    const failed = await outputs.attempt(name, signal, () =>
      outputs.configMap(name, file, JSON.stringify(rendered.file), signal),
    )
    if (failed !== null) throw failed.error
    onWritten({ objects: new Map(declared.map((one) => [keyOf(one), one])), refused: rendered.refused })
    return { requeueAfterMs: LOOK_AGAIN_MS }
  }
}
