import { mkdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Backoff, type Clock, type Ids, isObject, keepAlive, rfc3339 } from '@plat/core'
import {
  CopyDamagedError,
  type CopySource,
  type LocalLedger,
  localLedger,
  type Rebuilt,
  type Rec,
  rebuildLedger,
  replaceText,
  unfinishedRebuild,
  whyDiverged,
} from '@plat/ledger'
import type { Log } from '@plat/process'
import { type LedgerCopies, type LedgerCopy, lockPath } from '@plat/state'
import { type CopyName, type CopyStore, nameOf, writerOf } from './owner.ts'

/** How long a start waits for the process that had the copy before, in milliseconds: longer than its lease. */
const WAIT_MS = 20_000
const PAUSES = { firstMs: 200, maxMs: 1_000 }
/** Records at the end of a copy that no checkpoint covers, at most, beside those of two checkpoints. */
const UNPROVEN_SLACK = 10_000

export interface AgreeOptions extends CopyStore {
  readonly path: string
  readonly tenant: string
  /** `auditAcceptDivergedMirror` */
  readonly accept: boolean
  readonly checkpointEvery: number
  /** Public keys of checkpoints, as they are published. */
  readonly keys: () => readonly object[]
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/**
 * Compares the ledger at `path` with its copy before it is opened (docs/spec/gateway.md, `auditAcceptDivergedMirror`). A ledger that continues its copy
 * stays as it is; one that is missing is rebuilt from the copy, and one that differs as well if that is accepted. Returns what was rebuilt and is not
 * recorded yet, or null. Rejects with one line when the ledger differs, or when the copy does not verify.
 */
export async function agreeWithCopy(options: AgreeOptions): Promise<Rebuilt | null> {
  const { path, tenant, copies, heads, log } = options
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const unfinished = await unfinishedRebuild(path)
  if (unfinished !== null) return unfinished
  const local = await localLedger(path)
  const name = nameOf(path, tenant)
  const found = await copies.ofLedger({ ...name, ledgerId: local?.ledgerId ?? null })
  const copy = found.find((one) => isNamed(one, name)) ?? found[0]
  if (copy === undefined || copy.seq === -1) return null
  const why = local === null ? null : await whyOther(path, local, copy)
  if (local !== null && why === null) return null
  const end = `which ends at record ${copy.seq} (hash ${copy.hash})`
  if (why !== null && !options.accept) {
    throw new Error(
      `the audit ledger ${path} does not continue its copy in the state database, ${end}: ${why}. Restore the disk, or set ` +
        'auditAcceptDivergedMirror to set this ledger aside and go on from the copy',
    )
  }
  log.warn(
    { path, copy: copy.ledgerId, seq: copy.seq, reason: why ?? 'there is none' },
    'the audit ledger is rebuilt from its copy',
  )
  const rebuilt = await rebuild(options, copy, local)
  await heads.remove(copy.ledgerId)
  return rebuilt
}

function isNamed(copy: LedgerCopy, { tenant, replica, path }: CopyName): boolean {
  return copy.tenant === tenant && copy.replica === replica && copy.path === path
}

async function whyOther(path: string, local: LocalLedger, copy: LedgerCopy): Promise<string | null> {
  if (local.ledgerId === copy.ledgerId) return await whyDiverged(path, local, copy)
  return `it is ledger ${local.ledgerId ?? 'without a readable first record'}, and the copy is of ledger ${copy.ledgerId}`
}

async function rebuild(options: AgreeOptions, copy: LedgerCopy, local: LocalLedger | null): Promise<Rebuilt> {
  const { path, tenant, copies, heads, clock, ids, keys, checkpointEvery } = options
  const unlock = lockPath(path)
  const keysFile = `${path}.rebuild.jwks`
  try {
    // Not those beside the ledger: who can write there could have added one.
    const published = keys()
    await replaceText(keysFile, JSON.stringify({ keys: published }))
    const owner = { ...nameOf(path, tenant), ledgerId: copy.ledgerId, writer: await writerOf(path, ids) }
    await claimed(options, () => copies.claim(owner))
    // The process before may have gone on until now.
    const [current = copy] = await copies.ofLedger(owner)
    const head = headSeq(await heads.read(copy.ledgerId))
    return await rebuildLedger({
      path,
      source: sourceOf(copies, current),
      keys: published.length === 0 ? null : keysFile,
      maxUnproven: 2 * checkpointEvery + UNPROVEN_SLACK,
      reason: local === null ? 'no disk' : 'diverged',
      lostUpTo: head !== null && head > current.seq ? head : null,
      aside:
        local === null ? null : { folder: asideName(path, clock.now()), last: local.last, ledgerId: local.ledgerId },
    })
  } catch (error) {
    if (!(error instanceof CopyDamagedError)) throw error
    throw new Error(
      `the copy of the audit ledger ${path} in the state database was changed, and nothing is rebuilt from it: ${error.message}. ` +
        'Keep the database as evidence, and restore it or the disk from a backup',
    )
  } finally {
    await rm(keysFile, { force: true })
    unlock()
  }
}

function asideName(path: string, now: number): string {
  const name = path.slice(path.lastIndexOf('/') + 1)
  return `${name}.aside-${rfc3339(now).replaceAll(/[-:]/g, '').slice(0, 15)}Z`
}

function headSeq(text: string | null): number | null {
  if (text === null) return null
  const value: unknown = JSON.parse(text)
  return isObject(value) && typeof value.seq === 'number' ? value.seq : null
}

/** Waits while a process that may have ended is still the writer of the copy. */
async function claimed(
  { path, clock, ids }: Pick<AgreeOptions, 'path' | 'clock' | 'ids'>,
  claim: () => ReturnType<LedgerCopies['claim']>,
): Promise<void> {
  const backoff = new Backoff({ ...PAUSES, ids })
  const endsAt = clock.monotonic() + WAIT_MS
  for (let failures = 0; ; failures++) {
    const obstacle = await claim()
    if (obstacle === null) return
    if (obstacle === 'name' || clock.monotonic() > endsAt) {
      throw new Error(
        `another gateway writes the copy of the audit ledger ${path} under the same host name and path: give each replica a host name`,
      )
    }
    const letEnd = keepAlive()
    await new Promise<void>((resolve) => clock.after(backoff.pauseMs(failures), resolve))
    letEnd()
  }
}

/** Returns a copy as what ledgers are read from. */
export function sourceOf(copies: LedgerCopies, { ledgerId, seq, hash, bytes }: LedgerCopy): CopySource {
  return {
    ledgerId,
    end: { seq, hash, bytes },
    segments: () => copies.segments(ledgerId),
    chunks: (position, size) => copies.chunks(ledgerId, position, size),
  }
}

/** The record of a rebuild, with which the ledger goes on. */
export function rebuiltRecord({ reason, copy, lostUpTo, aside }: Rebuilt): Rec {
  return {
    kind: 'recovered',
    reason,
    copySeq: copy.seq,
    copyHash: copy.hash,
    ...(lostUpTo !== null && { lostUpTo }),
    ...(aside !== null && {
      file: aside.folder,
      asideSeq: aside.last,
      ...(aside.ledgerId !== null && { asideLedger: aside.ledgerId }),
    }),
  }
}
