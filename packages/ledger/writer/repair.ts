import { readFile, rename } from 'node:fs/promises'
import { isMissing, lockPath, systemFiles } from '@plat/state'
import { type Damage, followChain } from '../chain.ts'
import { setKeptAside } from '../proof/stored-checkpoint.ts'
import { sourceFilesOver } from '../sequence/files.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { genesisOf } from './genesis.ts'
import { headPath, readHead } from './head-file.ts'
import { moveDamaged } from './mend.ts'
import { type OpenLedgerOptions, openLedger } from './open.ts'
import { planReading } from './reading.ts'

/** Result of a repair. */
export interface Repaired {
  /** Number of valid records, which stay. */
  readonly entries: number
  /** The first damage; null when there was none inside (a torn tail is mended at every start). */
  readonly damage: Damage | null
  /** File with the removed bytes; null when there are none. */
  readonly aside: { readonly file: string; readonly bytes: number } | null
  /** Files of sealed segments that are neither there nor listed as archived; only a copy replaces them. */
  readonly missing: readonly string[]
}

/**
 * Makes a damaged ledger writable without losing a byte: the valid records before the first damage stay, everything after moves to
 * `<path>.damaged-<seq>`, and a `recovered` record with its SHA-256 continues the chain. The moved bytes are evidence: they may contain valid
 * records after the damage, which `plat audit verify` can no longer verify. Throws LockedError while a gateway writes the ledger, and an error when
 * there is no file at `path`.
 */
export async function repairLedger(options: Omit<OpenLedgerOptions, 'tenant' | 'replica'>): Promise<Repaired> {
  const { path } = options
  const files = options.files ?? systemFiles
  if (!files.exists(path)) throw new Error(`${path} does not exist`)
  const unlock = lockPath(path)
  let repaired: Repaired
  let names = { tenant: '', replica: 'repair' }
  try {
    const handle = files.openAppend(path)
    try {
      // A damaged genesis: the ledger begins anew.
      const { tenant, replica } = genesisOf(handle) ?? names
      names = { tenant, replica }
      await using sequence = await LedgerSequence.open(path, sourceFilesOver(files))
      const { chain } = await planReading(sequence, 'active')
      const found = await followChain({ source: handle, chain })
      const entries = found.head === null ? 0 : found.head.seq + 1
      // Files that name removed records go aside first: after a crash in between, the next repair finds the damage again.
      const asideFirst = async () => {
        await setKeptAside(path, entries)
        await setHeadAside(path, entries)
      }
      const aside = found.damage === null ? null : await moveDamaged({ path, handle, files, found }, asideFirst)
      const missing = sequence.parts
        .filter((part) => part.segment !== null && part.segment.file !== null && !files.exists(part.path))
        .map((part) => part.path)
      repaired = { entries, damage: found.damage, aside, missing }
    } finally {
      handle.close()
    }
  } finally {
    unlock()
  }
  await (await openLedger({ ...options, ...names, since: 'active' })).close()
  return repaired
}

/** A head that names a removed record is set aside with it. */
async function setHeadAside(path: string, records: number): Promise<void> {
  const beside = headPath(path)
  const text = await readFile(beside, 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return null
    throw error
  })
  const isKept = text === null || (readHead(text)?.seq ?? records) < records
  if (!isKept) await rename(beside, `${beside}.damaged-${records}`)
}
