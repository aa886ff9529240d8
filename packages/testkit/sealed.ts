import { readdirSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { systemIds, TestClock } from '@plat/core'
import { type FileLedger, type ListKeeper, openLedger, type RecordPlace } from '@plat/ledger'
import type { Files } from '@plat/state'

export interface SealedOptions {
  readonly path: string
  /** Absent: those of the system. */
  readonly files?: Files
  /** Size of a segment. */
  readonly bytes?: number
  /** Absent: one that nothing else uses. */
  readonly list?: ListKeeper
}

/** Opens a ledger with small segments. */
export function openSealing({ path, files, bytes = 4000, list }: SealedOptions): Promise<FileLedger> {
  const clock = new TestClock()
  const place = {
    path,
    tenant: '',
    replica: 'r1',
    clock,
    ids: systemIds(clock),
    sealing: { bytes, seconds: 0, ...(list && { list }) },
  }
  return openLedger({ ...place, ...(files !== undefined && { files }) })
}

/** Appends records until this many segments are sealed; only with the files of the system. */
export async function appendUntilSealed(ledger: FileLedger, path: string, segments: number): Promise<void> {
  const prefix = `${basename(path)}.0`
  while (readdirSync(dirname(path)).filter((name) => name.startsWith(prefix)).length < segments) {
    await Promise.all(
      Array.from({ length: 10 }, (_, n) => ledger.append({ kind: 'admin', tool: `t${n}`, user: 'alice' })),
    )
  }
}

/** Appends records, with time in between for the hash of a segment. */
export async function appendSlowly(ledger: FileLedger, count: number): Promise<RecordPlace[]> {
  const places: RecordPlace[] = []
  for (let round = 0; round < count; round++) {
    places.push(await ledger.append({ kind: 'admin', tool: `t${round}`, user: 'alice' }))
    for (let turn = 0; turn < 4; turn++) await setImmediate()
  }
  return places
}
