import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { ephemeralSigner } from '@plat/keys'
import { LedgerSequence, segmentsPath, verifyLedger } from '@plat/ledger'
import { writeSegments } from '@plat/testkit/segments'
import { type InjectedFault, underStrace } from './inject.ts'
import type { KillCount } from './kill-appender.ts'

/** System calls of archiving a segment in a folder and of removing it. */
const CALLS = [
  'openat',
  'mkdir',
  'read,pread64',
  'write,pwrite64',
  'fsync,fdatasync',
  'rename',
  'unlink,unlinkat',
  'close',
] as const
const CODES = ['EIO', 'ENOSPC'] as const
/** The first of the calls of a thread that fails, and how many do. */
const WHEN = ['1..2', '3..5'] as const
const SEGMENTS = 3
const RECORDS = 40

export const ARCHIVE_INJECTIONS = CALLS.length * CODES.length * WHEN.length

/**
 * Runs retention under strace with errors injected into its files' system calls. It must complete by itself, every segment must be whole in the archive,
 * and the list must say where each one is.
 */
export async function injectArchiveFaults(
  dir: string,
  runs: number,
  tell: (count: KillCount) => void,
): Promise<KillCount> {
  let count: KillCount = { kills: 0, acknowledged: 0, lost: 0, torn: 0, faults: [] }
  if (spawnSync('strace', ['-V']).error !== undefined)
    return { ...count, faults: ['strace is missing: apt-get install strace'] }
  let total = 0
  for (let index = 0; index < Math.min(runs, ARCHIVE_INJECTIONS); index++) {
    const call = CALLS[index % CALLS.length] ?? 'openat'
    const code = CODES[Math.floor(index / CALLS.length) % CODES.length] ?? 'EIO'
    const when = WHEN[Math.floor(index / CALLS.length / CODES.length) % WHEN.length] ?? '1'
    const { injected, segments, faults } = await runArchiver(path.join(dir, `archive-${index}`), { call, code, when })
    total += injected
    count = {
      ...count,
      kills: index + 1,
      acknowledged: count.acknowledged + segments,
      lost: count.lost + faults.length,
      faults: [...count.faults, ...faults.map((fault) => `${code} at ${call} ${when}: ${fault}`)],
    }
    tell(count)
  }
  console.log(`archive: ${total} errors injected`)
  return total > 0 ? count : { ...count, faults: [...count.faults, 'strace injected nothing'] }
}

async function runArchiver(folder: string, fault: InjectedFault) {
  const ledger = path.join(folder, 'ledger', 'audit.jsonl')
  const archive = path.join(folder, 'archive')
  mkdirSync(path.dirname(ledger), { recursive: true })
  const written = await writeSegments(ledger, { segments: SEGMENTS, records: RECORDS, signer: ephemeralSigner() })
  // The checkpoint at the beginning of the active file covers all sealed segments.
  writeFileSync(path.join(folder, 'checkpoint'), written.files.at(-1)?.lines[0] ?? '')
  const sealed = written.files.slice(0, -1).map(({ path: file }) => path.basename(file))
  const content = new Map(sealed.map((name) => [name, readFileSync(path.join(path.dirname(ledger), name))]))
  const list = segmentsPath(ledger)
  const files = [path.dirname(ledger), archive, list, `${list}.tmp`, `${ledger}.left.1.jsonl`].concat(
    sealed.flatMap((name) => {
      const copy = path.join(archive, name)
      return [path.join(path.dirname(ledger), name), copy, `${copy}.tmp`]
    }),
  )
  const { ended, injected } = await underStrace({ folder, files, script: 'fault-archiver.ts', fault })
  const faults = ended === 0 ? [] : [`retention did not complete by itself (exit code ${ended})`]
  for (const [name, bytes] of content) {
    const copy = path.join(archive, name)
    if (!existsSync(copy) || !readFileSync(copy).equals(bytes)) faults.push(`${name} is not whole in the archive`)
    if (existsSync(path.join(path.dirname(ledger), name))) faults.push(`${name} was archived and is still here`)
  }
  const rest = existsSync(archive) ? readdirSync(archive).filter((name) => !content.has(name)) : []
  if (rest.length > 0) faults.push(`the archive holds ${rest.join(', ')}`)
  faults.push(...(await wrongInList(ledger, archive, [...content.keys()])))
  return { injected, segments: sealed.length, faults }
}

async function wrongInList(ledger: string, archive: string, names: readonly string[]): Promise<readonly string[]> {
  await using sequence = await LedgerSequence.open(ledger)
  const all = await Array.fromAsync(sequence.segmentsOf(0, (sequence.parts.at(-1)?.first ?? 0) - 1))
  const places = all.map(({ archive: place }) => place)
  const expected = names.toSorted().map((name) => path.join(archive, name))
  const { verdict, message } = await verifyLedger(ledger)
  return [
    ...(places.join() === expected.join() ? [] : [`the list names ${places.join(', ')}`]),
    ...(verdict === 'valid' ? [] : [message]),
  ]
}
