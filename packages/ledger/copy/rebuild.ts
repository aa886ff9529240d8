import { existsSync } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isObject } from '@plat/core'
import { isMissing } from '@plat/state'
import type { Head } from '../format.ts'
import { checkpointsPath, treePath } from '../proof/stored-checkpoint.ts'
import { replaceText, syncFolder } from '../sequence/files.ts'
import { segmentsPath } from '../sequence/segment-entry.ts'
import { writeList } from '../sequence/segment-list.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { verifyLedger } from '../verify.ts'
import { headPath } from '../writer/head-file.ts'
import { CopyDamagedError } from './chunk.ts'
import { type CopySource, copyFiles, copyPath } from './copy-files.ts'

/** Bytes that are written at once. */
const WRITE_BYTES = 1024 * 1024
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

/** A rebuild, as its record states it. */
export interface Rebuilt {
  /** Why the copy was used. */
  readonly reason: 'no disk' | 'diverged'
  /** Last record of the copy, from which the ledger goes on. */
  readonly copy: Head
  /** A later record that was durable before, and is lost with those before it; null when none is known. */
  readonly lostUpTo: number | null
  /** Name of the folder with the files that were set aside, and their last record; null when there were none. */
  readonly aside: { readonly folder: string; readonly last: number; readonly ledgerId: string | null } | null
}

export interface RebuildOptions extends Omit<Rebuilt, 'copy'> {
  readonly path: string
  readonly source: CopySource
  /** Public keys that sign checkpoints, as a file; null: there are none, and only the chain is verified. */
  readonly keys: string | null
  /** Maximum number of records at the end that no signature covers, with keys. */
  readonly maxUnproven: number
}

/** State of a rebuild, beside the ledger from the moment at which its files are changed. */
interface Plan {
  readonly rebuilt: Rebuilt
  readonly old: readonly string[]
  readonly now: readonly string[]
}

/**
 * Writes the files of a ledger from its copy, in the usual format, after the whole of it was verified. The files that are there are moved into the folder
 * `aside`. A crash at any point leaves the old files, or a rebuild that `unfinishedRebuild` completes. Throws CopyDamagedError when the copy does not
 * verify; nothing is changed then.
 */
export async function rebuildLedger({ path, source, keys, maxUnproven, ...rest }: RebuildOptions): Promise<Rebuilt> {
  const staging = stagingOf(path)
  await rm(staging, { recursive: true, force: true })
  await mkdir(staging, { recursive: true, mode: FOLDER_MODE })
  await writeFiles(join(staging, basename(path)), source)
  await verify(join(staging, basename(path)), source, keys === null ? null : { keys, maxUnproven })
  const now = await readdir(staging)
  const rebuilt = { ...rest, copy: { seq: source.end.seq, hash: source.end.hash } }
  const plan: Plan = { rebuilt, old: await ledgerFiles(path), now }
  await syncFolder(staging)
  await replaceText(planOf(path), JSON.stringify(plan))
  await syncFolder(dirname(path))
  await move(path, plan)
  return rebuilt
}

/** Completes the rebuild that a crash interrupted, or that was not recorded. Returns null when there is none. */
export async function unfinishedRebuild(path: string): Promise<Rebuilt | null> {
  const plan = await readPlan(path)
  if (plan === null) {
    await rm(stagingOf(path), { recursive: true, force: true })
    return null
  }
  await move(path, plan)
  return plan.rebuilt
}

/** Called when the record of a rebuild is durable. */
export async function rebuildRecorded(path: string): Promise<void> {
  await rm(planOf(path), { force: true })
  await rm(stagingOf(path), { recursive: true, force: true })
}

function stagingOf(path: string): string {
  return `${path}.rebuild`
}

function planOf(path: string): string {
  return `${path}.rebuild.json`
}

async function readPlan(path: string): Promise<Plan | null> {
  const text = await readFile(planOf(path), 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return null
    throw error
  })
  if (text === null) return null
  const value: unknown = JSON.parse(text)
  if (isPlan(value)) return value
  throw new Error(`${planOf(path)} is malformed: move it and ${stagingOf(path)} away, and start again`)
}

function isPlan(value: unknown): value is Plan {
  return isObject(value) && isObject(value.rebuilt) && Array.isArray(value.old) && Array.isArray(value.now)
}

/** Moves old files aside and new ones to their place; can be repeated. */
async function move(path: string, { rebuilt, old, now }: Plan): Promise<void> {
  const folder = dirname(path)
  const staging = stagingOf(path)
  const aside = rebuilt.aside === null ? null : join(folder, rebuilt.aside.folder)
  if (aside !== null) {
    await mkdir(aside, { recursive: true, mode: FOLDER_MODE })
    for (const name of old) {
      // A new file of this name is here already.
      if (now.includes(name) && !existsSync(join(staging, name))) continue
      if (existsSync(join(folder, name))) await rename(join(folder, name), join(aside, name))
    }
    await syncFolder(aside)
  }
  for (const name of now) if (existsSync(join(staging, name))) await rename(join(staging, name), join(folder, name))
  await syncFolder(folder)
  // Derived files of these names are written from now on.
  await replaceText(planOf(path), JSON.stringify({ rebuilt, old: [], now: [] } satisfies Plan))
}

/** Returns the names of all files with records of a ledger, or with what was derived from them. Public keys stay. */
async function ledgerFiles(path: string): Promise<readonly string[]> {
  const name = basename(path)
  const derived = [headPath(path), checkpointsPath(path), treePath(path), segmentsPath(path)].map((one) =>
    basename(one),
  )
  const others = new Set([name, ...derived, `${name}.resume.json`, `${name}.recent.json`])
  const rest = /^\.(\d{20}\.jsonl(\.zst)?|left\.\d+\.jsonl|(torn|damaged)-\d+)$/
  const names = await readdir(dirname(path))
  return names.filter((one) => others.has(one) || (one.startsWith(name) && rest.test(one.slice(name.length))))
}

/** Writes all files of a copy under another path. */
async function writeFiles(path: string, source: CopySource): Promise<void> {
  const from = copyPath(source.ledgerId)
  await using sequence = await LedgerSequence.open(from, await copyFiles(source))
  for (const part of sequence.parts) {
    if (part.leftUpTo !== null) continue
    const end = part.segment === null ? await sequence.size() : part.offset + part.segment.bytes
    const target = part.segment === null ? path : path + basename(part.path).slice(basename(from).length)
    await using file = await open(target, 'wx', FILE_MODE)
    await writeSpan(file, sequence, { from: part.offset, to: end })
    await file.sync()
  }
  if (!sequence.segments.some(({ left }) => left !== null)) return
  const name = basename(path)
  const segments = sequence.segments.map((one) => ({
    ...one,
    file: one.file === null ? null : name + one.file.slice(basename(from).length),
  }))
  await replaceText(segmentsPath(path), writeList(segments, null))
}

async function writeSpan(
  file: FileHandle,
  sequence: LedgerSequence,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  const block = Buffer.allocUnsafe(WRITE_BYTES)
  for (let at = from; at < to; ) {
    const count = await sequence.read(block.subarray(0, Math.min(block.length, to - at)), at)
    if (count === 0) throw new CopyDamagedError(`it ends at position ${at}, before ${to}`)
    await file.writeFile(block.subarray(0, count))
    at += count
  }
}

/** Verifies chain and checkpoints of the written files, and that they end with the stated record of this ledger. */
async function verify(
  path: string,
  { end, ledgerId }: CopySource,
  trust: { readonly keys: string; readonly maxUnproven: number } | null,
): Promise<void> {
  const found = await verifyLedger(path, { strict: true, ...(trust !== null && { key: trust.keys }) })
  const isWhole = found.verdict === 'valid' || found.verdict === 'unproven'
  if (!isWhole) throw new CopyDamagedError(found.message)
  if (found.head?.hash !== end.hash || found.head.seq !== end.seq) throw new CopyDamagedError('it has another end')
  if (found.ledgerId !== ledgerId) throw new CopyDamagedError(`it is a copy of ledger ${found.ledgerId}`)
  if (trust === null) return
  if ((found.unproven ?? 0) > trust.maxUnproven)
    throw new CopyDamagedError(`no signed checkpoint covers its last ${found.unproven} records`)
}
