import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { hostname } from 'node:os'
import type { Clock, Ids } from '@plat/core'
import { type PublicKey, readPublicKeys, type Signer } from '@plat/keys'
import {
  type FileLedger,
  type HeadStore,
  headFile,
  keysPath,
  type Ledger,
  type LedgerMeter,
  lastCheckpoint,
  openLedger,
  type Rebuilt,
  type Rec,
  type RecordPlace,
  rebuildRecorded,
  refuseRolledBack,
  type SealingOptions,
  type StoredCheckpoint,
  tailLedger,
} from '@plat/ledger'
import type { Log } from '@plat/process'
import { type Files, systemFiles } from '@plat/state'
import { type Verification, verifyInBackground } from './background.ts'
import { Checkpoints } from './checkpoints.ts'
import { agreeWithCopy, rebuiltRecord } from './copy/agree.ts'
import type { CopyStore } from './copy/owner.ts'
import { CopyShipper } from './copy/shipper.ts'
import { type Keyring, publishedKey } from './keyring.ts'
import type { LedgerMetrics } from './ledger-metrics.ts'
import { RecentKeeper, RecentRecords, readRecent } from './recent.ts'
import { createSegments, type Segments } from './segments.ts'

/** Bytes of the active file between points from which a start can read: it reads little more. */
const RESUME_EVERY_BYTES = 16 * 1024 * 1024

export interface AuditLedgerOptions {
  readonly config: {
    /** The file of this ledger. */
    readonly auditPath: string
    readonly auditCheckpointIntervalSeconds: number
    readonly auditCheckpointEvery: number
    readonly auditSegmentBytes: number
    readonly auditSegmentSeconds: number
    readonly auditVerifyBytesPerSecond: number
    readonly auditAcceptDivergedMirror?: boolean
  }
  /** Empty: the fleet's. */
  readonly tenant: string
  readonly keyring: Keyring
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: LedgerMetrics
  /** Default: the file system of the machine. */
  readonly files?: Files
  /** Second storage of the head beside `<auditPath>.head`, or null. */
  readonly headStore?: HeadStore | null
  /** Where a copy of the ledger is kept, or null. */
  readonly copyStore?: CopyStore | null
  /** Last record whose effects the caller of `onRecord` has saved; null: `onRecord` needs every record. */
  readonly since: RecordPlace | null
  /** Called with the bytes of records from `since` on, in order, and their places; the bytes are valid only during the call. */
  readonly onRecord: (record: Buffer, place: RecordPlace) => void
  /** Called each time that the ledger cannot be written. */
  readonly onPoisoned: (reason: string) => void
}

/** One ledger of the gateway with its checkpoints and segments. */
export interface AuditLedger {
  /** Empty: the fleet's. */
  readonly tenant: string
  /** Its active file. */
  readonly path: string
  readonly ledger: Ledger
  readonly ledgerId: string
  /** The last record with a place in the chain, durable or not. */
  placed(): RecordPlace
  /** Resolves with the last durable record once waiting ones are committed. */
  flushed(): Promise<RecordPlace>
  /** Checkpoints and their anchors. */
  readonly checkpoints: CheckpointsView
  /** Recent records that features may have to finish after a crash, as of the start. */
  recent(): readonly Rec[]
  /** Its sealed segments. */
  readonly segments: Segments
  /** Verification of sealed segments; null: there is none. */
  readonly verification: Verification | null
  /** Ships the ledger to its copy; null: there is none. */
  readonly shipper: CopyShipper | null
  /** Signs and commits waiting records, and releases the lock. */
  close(): Promise<void>
}

/** Checkpoints, for other features. */
export interface CheckpointsView {
  /** Current key of `auditCheckpointKey`. Rejects without one. */
  signer(): Promise<Signer>
  /** The current key, keys used since the start, and retired keys. */
  keys(): readonly PublicKey[]
  /** The last checkpoint or null; `fresh`: first makes one over uncovered records, if possible. */
  last(fresh: boolean): Promise<StoredCheckpoint | null>
  /** The last anchor in the transparency log, as read from the ledger at start, or null. */
  lastAnchor(): Rec | null
}

/**
 * Opens a ledger (docs/spec/gateway.md, "Audit") and creates it if missing, from its copy if there is one. Throws one line if another process writes it,
 * or if it is damaged, rolled back, not writable, or does not continue its copy.
 */
export async function openAuditLedger(options: AuditLedgerOptions): Promise<AuditLedger> {
  const { config, tenant, keyring, log, metrics, files } = options
  const path = config.auditPath
  const rebuilt = await agreed(options)
  await refuseRolledBack(path)
  if (files === undefined) await refuseForeign(path, tenant)
  let checkpoints: Checkpoints | null = null
  const meter = meterOf(options, (seq) => checkpoints?.committed(seq))
  const segments = createSegments(options)
  const { ledger, recent, keeper } = await openRecorded(options, { meter, segments })
  const head = ledger.head()
  metrics.head(head.seq)
  log.info({ path, seq: head.seq, hash: head.hash }, 'the audit ledger is open')
  if (files === undefined) keepKeys(path, keyring)
  checkpoints = await openCheckpoints(ledger, options)
  if (rebuilt !== null) await recordRebuilt(ledger, path, rebuilt)
  const shipper = shipperOf(ledger, options)
  const verification = files === undefined ? await verifyInBackground({ ...options, unread: ledger.unread }) : null
  return {
    ...{ tenant, path, ledger, ledgerId: ledger.ledgerId, segments, verification, shipper },
    placed: () => ledger.placed,
    async flushed() {
      await ledger.flush()
      return ledger.head()
    },
    checkpoints: {
      signer: () => signerOf(keyring),
      keys: () => keyring.keys(),
      last: async (fresh) => {
        if (fresh) await checkpoints?.now()
        return await lastCheckpoint(path)
      },
      lastAnchor: () => recent.anchor,
    },
    recent: () => recent.all(),
    async close() {
      await verification?.stop()
      await checkpoints?.close()
      await ledger.flush()
      await keeper?.close()
      await shipper?.close()
      await ledger.close()
    },
  }
}

/** Compares the ledger with its copy, and rebuilds it if necessary and allowed. Returns what must be recorded, or null. */
async function agreed(options: AuditLedgerOptions): Promise<Rebuilt | null> {
  const { config, keyring, copyStore = null } = options
  if (copyStore === null) return null
  return await agreeWithCopy({
    ...{ ...options, ...copyStore, path: config.auditPath },
    accept: config.auditAcceptDivergedMirror === true,
    checkpointEvery: config.auditCheckpointEvery,
    keys: () => keyring.published(),
  })
}

async function recordRebuilt(ledger: FileLedger, path: string, rebuilt: Rebuilt): Promise<void> {
  await ledger.append(rebuiltRecord(rebuilt))
  await rebuildRecorded(path)
}

function shipperOf(ledger: FileLedger, options: AuditLedgerOptions): CopyShipper | null {
  const { config, copyStore = null } = options
  if (copyStore === null) return null
  const { ledgerId } = ledger
  return new CopyShipper({ ...options, ...copyStore, path: config.auditPath, ledgerId, head: () => ledger.head() })
}

/** Throws if the active file begins with a record of another tenant: folders may have been exchanged. A damaged line is found when the ledger is opened. */
async function refuseForeign(path: string, tenant: string): Promise<void> {
  if (!existsSync(path)) return
  const handle = await open(path, 'r')
  const { buffer, bytesRead } = await handle
    .read(Buffer.alloc(FIRST_LINE_MAX_BYTES), 0, FIRST_LINE_MAX_BYTES, 0)
    .finally(() => handle.close())
  const line = buffer.toString('utf8', 0, bytesRead).split('\n', 1)[0] ?? ''
  const found = TENANT_OF_LINE.exec(line)?.[1] ?? tenant
  if (found === tenant) return
  const whose = (name: string) => (name === '' ? 'the fleet' : `tenant ${name}`)
  throw new Error(`the audit ledger ${path} is of ${whose(found)}, not of ${whose(tenant)}: was it moved?`)
}

/** A record has at most 256 KiB. */
const FIRST_LINE_MAX_BYTES = 257 * 1024

/** Quotes within texts are escaped, and no member before it can contain the same. */
const TENANT_OF_LINE = /,"tenant":"([-a-z0-9]{0,63})"[,}]/

/** Opens the ledger, reading it from the last record on that both `onRecord` and the saved recent records cover. */
async function openRecorded(
  options: AuditLedgerOptions,
  { meter, segments }: { readonly meter: LedgerMeter; readonly segments: Segments },
) {
  const { config, tenant, keyring, clock, ids, log, files, headStore, since, onRecord } = options
  const path = config.auditPath
  const saved = files === undefined ? await readRecent(path) : null
  const recent = new RecentRecords(clock, since === null ? null : saved)
  let keeper: RecentKeeper | null = null
  const ledger = await openLedger({
    ...{ path, tenant, replica: hostname(), clock, ids, meter, sealing: sealingOf(options, segments) },
    ...(since !== null && saved !== null && { since: since.seq < saved.ledger.seq ? since : saved.ledger }),
    onRecord(record, place) {
      recent.see(record, place)
      onRecord(record, place)
    },
    onDurable: (rec, place) => keeper?.note(rec, place),
    headSigner: () => currentSigner(path, keyring),
    onHeadFault: (reason) => log.error({ path, reason }, 'the head of the audit ledger cannot be stored outside of it'),
    ...(files !== undefined && { files }),
    ...(headStore && { heads: [headFile(path), headStore] }),
  })
  const all = recent.mustReadAgain ? await readAgain(options) : recent
  if (files === undefined) keeper = new RecentKeeper({ path, clock, log, head: () => ledger.head(), recent: all })
  return { ledger, recent: all, keeper }
}

/** Reads all that is here: the saved records are of another ledger, or later than its end. */
async function readAgain({ config, clock, log }: AuditLedgerOptions): Promise<RecentRecords> {
  log.warn({ path: config.auditPath }, 'the saved recent records are not of this ledger: the whole of it is read')
  const recent = new RecentRecords(clock)
  for await (const { seq, hash, rec } of tailLedger(config.auditPath))
    recent.see(Buffer.from(JSON.stringify(rec)), { seq, hash })
  return recent
}

function sealingOf({ config, metrics, log }: AuditLedgerOptions, { list }: Segments): SealingOptions {
  const path = config.auditPath
  return {
    ...{ list, bytes: config.auditSegmentBytes, seconds: config.auditSegmentSeconds },
    // Without a verification in the background, each start verifies the whole active file.
    ...(config.auditVerifyBytesPerSecond > 0 && { resumeEveryBytes: RESUME_EVERY_BYTES }),
    onFault(reason) {
      metrics.sealingFailed()
      log.error({ path, reason }, 'a segment of the audit ledger could not be sealed; it will be tried again')
    },
  }
}

/** Stores the public keys beside the ledger, for `plat audit verify`; keeps earlier ones, which have signed its records. */
function keepKeys(path: string, keyring: Keyring): void {
  const published = keyring.published()
  if (published.length === 0) return
  const file = keysPath(path)
  const before = systemFiles.readWhole(file)
  const old = before === null ? [] : readPublicKeys(Buffer.from(before).toString(), file)
  const known = new Set(published.map(({ kid }) => kid))
  const previous = old.filter(({ kid }) => !known.has(kid)).map(publishedKey)
  const text = `${JSON.stringify({ keys: [...published, ...previous] }, null, 2)}\n`
  if (before === null || Buffer.from(before).toString() !== text) systemFiles.replace(file, Buffer.from(text))
}

/** Publishes a new key beside the ledger before it signs a head. */
async function currentSigner(path: string, keyring: Keyring): Promise<Signer | null> {
  const before = keyring.keys().length
  const signer = (await keyring.current())?.signer ?? null
  if (keyring.keys().length !== before) keepKeys(path, keyring)
  return signer
}

async function signerOf(keyring: Keyring): Promise<Signer> {
  const signer = (await keyring.current())?.signer ?? null
  if (signer === null) throw new Error('auditCheckpointKey is not set')
  return signer
}

/** Returns null without a key: then nothing is signed. HMAC checkpoints are made by number of records only. */
async function openCheckpoints(
  ledger: FileLedger,
  { config, keyring, metrics, clock, log }: AuditLedgerOptions,
): Promise<Checkpoints | null> {
  const keys = await keyring.current()
  if (keys === null) return null
  const path = config.auditPath
  return Checkpoints.open({
    ledger,
    path,
    ledgerId: ledger.ledgerId,
    keyring,
    everyRecords: config.auditCheckpointEvery,
    everyMs: keys.signer === null ? null : config.auditCheckpointIntervalSeconds * 1000,
    clock,
    log,
    onSigned: (upTo) => metrics.signed(upTo),
  })
}

/** Counts commits, and logs failures and recovery of the disk. */
function meterOf({ metrics, log, config, onPoisoned }: AuditLedgerOptions, onHead: (seq: number) => void): LedgerMeter {
  const path = config.auditPath
  return {
    committed(commit, seq) {
      metrics.committed(commit.seconds, commit.records)
      metrics.head(seq)
      onHead(seq)
    },
    missed: () => metrics.missed(),
    poisoned(reason, retryMs) {
      log.error({ path, reason, retryMs }, 'the audit ledger cannot be written; no record is acknowledged')
      onPoisoned(reason)
    },
    recovered: (gap) =>
      log.warn({ path, unrecorded: gap }, 'the audit ledger can be written again; the gap is recorded'),
  }
}
