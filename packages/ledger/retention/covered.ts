import type { PublicKey } from '@plat/keys'
import { readCheckpointRecord } from '../proof/checkpoint.ts'
import type { StoredCheckpoint } from '../proof/stored-checkpoint.ts'
import { judgeCheckpoint } from '../proof/trust.ts'

/** Returns the last record that a checkpoint covers; -1 when none of these keys signed it. */
export function coveredBy({ rec }: StoredCheckpoint, keys: readonly PublicKey[]): number {
  const checkpoint = readCheckpointRecord(rec)
  if (typeof checkpoint === 'string' || judgeCheckpoint(checkpoint, { keys, hmacKey: null }) !== true) return -1
  return checkpoint.size - 1
}
