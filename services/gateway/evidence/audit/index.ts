import { hostname } from 'node:os'
import type { Clock, Ids } from '@plat/core'
import { type PublicKey, readPublicKeys, type Signer } from '@plat/keys'
import {
  type FileLedger,
  type HeadStore,
  headFile,
  keysPath,
  type LedgerMeter,
  type Ledgers,
  lastCheckpoint,
  openLedger,
  type Rec,
  type RecordPlace,
  refuseRolledBack,
  type SealingOptions,
  type StoredCheckpoint,
  tailLedger,
} from '@plat/ledger'
import type { Log } from '@plat/process'
import { type Files, systemFiles } from '@plat/state'
import type { AdminRoutes } from '../../admin/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { verifyInBackground } from './background.ts'
import { Checkpoints } from './checkpoints.ts'
import { type Keyring, type KeyringOptions, openKeyring, publishedKey } from './keyring.ts'
import { RecentKeeper, RecentRecords, readRecent } from './recent.ts'
import { createAuditRoutes } from './routes.ts'
import { createSegments, type Segments } from './segments.ts'

/** Bytes of the active file between points from which a start can read: it reads little more. */
const RESUME_EVERY_BYTES = 16 * 1024 * 1024

export interface AuditOptions {
  readonly config: KeyringOptions['config'] & {
    readonly auditPath: string
    readonly auditCheckpointIntervalSeconds: number
    readonly auditCheckpointEvery: number
    readonly auditSegmentBytes: number
    readonly auditSegmentSeconds: number
    readonly auditVerifyBytesPerSecond: number
  }
  /** Source of `PLAT_AUDIT_HMAC_KEY`. */
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
  /** Default: the file system of the machine. */
  readonly files?: Files
  /** Second storage of the head beside `<auditPath>.head`, or null. */
  readonly headStore?: HeadStore | null
  /** Last record whose effects the caller of `onRecord` has saved; null: `onRecord` needs every record. */
  readonly since: RecordPlace | null
  /** Called with the bytes of records from `since` on, in order, and their places; the bytes are valid only during the call. */
  readonly onRecord: (record: Buffer, place: RecordPlace) => void
}

export interface Audit {
  readonly ledgers: Ledgers
  readonly ledgerId: string
  /** The last record with a place in the chain, durable or not. */
  placed(): RecordPlace
  /** Resolves with the last durable record once waiting ones are committed. */
  flushed(): Promise<RecordPlace>
  /** Current key of `auditCheckpointKey`. Rejects without one. */
  signer(): Promise<Signer>
  /** Checkpoints and their anchors. */
  readonly checkpoints: CheckpointsView
  /** Recent records that features may have to finish after a crash, as of the start. */
  recent(): readonly Rec[]
  /** Registers a listener for each time that the ledger cannot be written. */
  onUnavailable(notify: (reason: string) => void): void
  /** The sealed segments of the ledger. */
  readonly segments: Segments
  /** `/v1/audit` of the admin API. */
  readonly routes: AdminRoutes
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
 * Opens the ledger of `auditPath` (docs/spec/gateway.md, "Audit"); the gateway does not start without it, whatever the `auditFailurePolicy`.
 * Throws one line if another process writes it, if it is damaged, rolled back or not writable, or if a key for its checkpoints
 * cannot be used.
 */
export async function createAudit(options: AuditOptions): Promise<Audit> {
  const { config, log, metrics, files } = options
  const path = config.auditPath
  const keyring = await openKeyring(options)
  await refuseRolledBack(path)
  let checkpoints: Checkpoints | null = null
  const followers: ((reason: string) => void)[] = []
  const meter = meterOf(metrics, log, {
    onHead: (seq) => checkpoints?.committed(seq),
    onPoisoned(reason) {
      for (const notify of followers) notify(reason)
    },
  })
  const segments = createSegments(options)
  const { ledger, recent, keeper } = await openRecorded(options, { keyring, meter, segments })
  const head = ledger.head()
  metrics.gauge('plat_gateway_audit_head_seq').set({}, head.seq)
  log.info({ path, seq: head.seq, hash: head.hash }, 'the audit ledger is open')
  if (files === undefined) keepKeys(path, keyring)
  checkpoints = await openCheckpoints(ledger, keyring, options)
  const verification = files === undefined ? await verifyInBackground({ ...options, unread: ledger.unread }) : null
  const signer = () => signerOf(keyring)
  return {
    // All tenants share one ledger: `tenantsFile`, which would separate them, is refused at start.
    ledgers: { of: () => ledger },
    ledgerId: ledger.ledgerId,
    placed: () => ledger.placed,
    async flushed() {
      await ledger.flush()
      return ledger.head()
    },
    signer,
    checkpoints: {
      signer,
      keys: () => keyring.keys(),
      last: async (fresh) => {
        if (fresh) await checkpoints?.now()
        return await lastCheckpoint(path)
      },
      lastAnchor: () => recent.anchor,
    },
    recent: () => recent.all(),
    segments,
    onUnavailable: (notify) => void followers.push(notify),
    routes: createAuditRoutes({ path, head: () => ledger.head(), verification, keyring, log }),
    async close() {
      await verification?.stop()
      await checkpoints?.close()
      await ledger.flush()
      await keeper?.close()
      await ledger.close()
    },
  }
}

/** Opens the ledger, reading it from the last record on that both `onRecord` and the saved recent records cover. */
async function openRecorded(
  options: AuditOptions,
  { keyring, meter, segments }: { readonly keyring: Keyring; readonly meter: LedgerMeter; readonly segments: Segments },
) {
  const { config, clock, ids, log, files, headStore, since, onRecord } = options
  const path = config.auditPath
  const saved = files === undefined ? await readRecent(path) : null
  const recent = new RecentRecords(clock, since === null ? null : saved)
  let keeper: RecentKeeper | null = null
  const ledger = await openLedger({
    ...{ path, tenant: '', replica: hostname(), clock, ids, meter, sealing: sealingOf(options, segments) },
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
async function readAgain({ config, clock, log }: AuditOptions): Promise<RecentRecords> {
  log.warn({ path: config.auditPath }, 'the saved recent records are not of this ledger: the whole of it is read')
  const recent = new RecentRecords(clock)
  for await (const { seq, hash, rec } of tailLedger(config.auditPath))
    recent.see(Buffer.from(JSON.stringify(rec)), { seq, hash })
  return recent
}

function sealingOf({ config, metrics, log }: AuditOptions, { list }: Segments): SealingOptions {
  const path = config.auditPath
  const failures = metrics.counter('plat_gateway_audit_sealing_failures_total').labels({})
  return {
    ...{ list, bytes: config.auditSegmentBytes, seconds: config.auditSegmentSeconds },
    // Without a verification in the background, each start verifies the whole active file.
    ...(config.auditVerifyBytesPerSecond > 0 && { resumeEveryBytes: RESUME_EVERY_BYTES }),
    onFault(reason) {
      failures.inc()
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
  keyring: Keyring,
  { config, metrics, clock, log }: AuditOptions,
): Promise<Checkpoints | null> {
  const keys = await keyring.current()
  if (keys === null) return null
  const path = config.auditPath
  const signedSeq = metrics.gauge('plat_gateway_audit_signed_checkpoint_seq').labels({})
  return Checkpoints.open({
    ledger,
    path,
    ledgerId: ledger.ledgerId,
    keyring,
    everyRecords: config.auditCheckpointEvery,
    everyMs: keys.signer === null ? null : config.auditCheckpointIntervalSeconds * 1000,
    clock,
    log,
    onSigned: (upTo) => signedSeq.set(upTo),
  })
}

/** Metrics `plat_gateway_audit_*`; also logs failures and recovery of the disk. */
function meterOf(
  metrics: GatewayMetrics,
  log: Log,
  { onHead, onPoisoned }: { readonly onHead: (seq: number) => void; readonly onPoisoned: (reason: string) => void },
): LedgerMeter {
  const seconds = metrics.histogram('plat_gateway_audit_commit_seconds').labels({})
  const records = metrics.counter('plat_gateway_audit_committed_records_total').labels({})
  const errors = metrics.counter('plat_gateway_audit_errors_total').labels({})
  const headSeq = metrics.gauge('plat_gateway_audit_head_seq').labels({})
  return {
    committed(commit, seq) {
      seconds.observe(commit.seconds)
      records.inc(commit.records)
      headSeq.set(seq)
      onHead(seq)
    },
    missed: () => errors.inc(),
    poisoned(reason, retryMs) {
      log.error({ reason, retryMs }, 'the audit ledger cannot be written; no record is acknowledged')
      onPoisoned(reason)
    },
    recovered: (gap) => log.warn({ unrecorded: gap }, 'the audit ledger can be written again; the gap is recorded'),
  }
}
