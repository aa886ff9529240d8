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
  ledgerPage,
  openLedger,
  type Rec,
  refuseRolledBack,
  type StoredCheckpoint,
} from '@plat/ledger'
import type { Log } from '@plat/process'
import { type Files, systemFiles } from '@plat/state'
import type { AdminRoutes } from '../../admin/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { Checkpoints } from './checkpoints.ts'
import { type Keyring, type KeyringOptions, openKeyring, publishedKey } from './keyring.ts'
import { RecentRecords } from './recent.ts'
import { createAuditRoutes } from './routes.ts'

export interface AuditOptions {
  readonly config: KeyringOptions['config'] & {
    readonly auditPath: string
    readonly auditCheckpointIntervalSeconds: number
    readonly auditCheckpointEvery: number
  }
  /** Where `PLAT_AUDIT_HMAC_KEY` is read from. */
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
  /** The machine's file system when absent. */
  readonly files?: Files
  /** Where the head is kept as well, beside `<auditPath>.head`; null: nowhere. */
  readonly headStore?: HeadStore | null
  /** Sees the bytes of every record that the ledger holds already, in order, and its place; the bytes are only good until it returns. */
  readonly onRecord: (record: Buffer, place: { readonly seq: number; readonly hash: string }) => void
}

export interface Audit {
  readonly ledgers: Ledgers
  /** The last record that has its place in the chain, durable or not. */
  placed(): { readonly seq: number; readonly hash: string }
  /** The key of `auditCheckpointKey` as it is now. Rejects without one. */
  signer(): Promise<Signer>
  /** Checkpoints and their anchors. */
  readonly checkpoints: CheckpointsView
  /** Records of features that may have died over them, as the ledger held them at start; answered once. */
  recent(): readonly Rec[]
  /** Is told each time that the ledger cannot be written. */
  onUnavailable(tell: (reason: string) => void): void
  /** `/v1/audit` of the admin API. */
  readonly routes: AdminRoutes
  /** Signs and commits what waits and gives the lock back. */
  close(): Promise<void>
}

/** What others may know of checkpoints. */
export interface CheckpointsView {
  /** The key of `auditCheckpointKey` as it is now. Rejects without one. */
  signer(): Promise<Signer>
  /** What signs now, what signed since the start, and what is retired. */
  keys(): readonly PublicKey[]
  /** The last checkpoint; `fresh`: after one was made over all that none covers, as far as that can be done. Null: there is none. */
  last(fresh: boolean): Promise<StoredCheckpoint | null>
  /** The last anchor in the transparency log, as the ledger held it at start. */
  lastAnchor(): Rec | null
}

/**
 * Opens the ledger of `auditPath` (docs/spec/gateway.md, "Audit"): the gateway does not start without it, whatever `auditFailurePolicy` says.
 * Throws one line when another process writes it, when it is damaged or was put back to an older state, when it cannot be written, and
 * when a key of its checkpoints cannot be used.
 */
export async function createAudit(options: AuditOptions): Promise<Audit> {
  const { config, clock, ids, log, metrics, files, headStore, onRecord } = options
  const path = config.auditPath
  const keyring = await openKeyring(options)
  await refuseRolledBack(path)
  let checkpoints: Checkpoints | null = null
  const recent = new RecentRecords(clock)
  const followers: ((reason: string) => void)[] = []
  const ledger = await openLedger({
    path,
    tenant: '',
    replica: hostname(),
    clock,
    ids,
    meter: meterOf(metrics, log, {
      onHead: (seq) => checkpoints?.committed(seq),
      onPoisoned(reason) {
        for (const tell of followers) tell(reason)
      },
    }),
    onRecord(record, place) {
      recent.see(record)
      onRecord(record, place)
    },
    headSigner: () => currentSigner(path, keyring),
    onHeadFault: (reason) => log.error({ path, reason }, 'the head of the audit ledger cannot be kept outside it'),
    ...(files !== undefined && { files }),
    ...(headStore && { heads: [headFile(path), headStore] }),
  })
  const head = ledger.head()
  metrics.gauge('plat_gateway_audit_head_seq').set({}, head.seq)
  log.info({ path, seq: head.seq, hash: head.hash }, 'the audit ledger is open')
  if (files === undefined) keepKeys(path, keyring)
  checkpoints = await openCheckpoints(ledger, keyring, options)
  const signer = () => signerOf(keyring)
  return {
    ledgers: {
      // Every tenant shares one ledger: `tenantsFile`, which would give each its own, is refused at the start.
      of: () => ledger,
    },
    placed: () => ledger.placed,
    signer,
    checkpoints: {
      signer,
      keys: () => keyring.keys(),
      async last(fresh) {
        if (fresh) await checkpoints?.now()
        return await lastCheckpoint(path)
      },
      lastAnchor: () => recent.anchor,
    },
    recent: () => recent.take(),
    onUnavailable: (tell) => void followers.push(tell),
    routes: createAuditRoutes({ path, head: () => ledger.head(), keyring, log }),
    async close() {
      await checkpoints?.close()
      await ledger.close()
    },
  }
}

/** Puts the public keys beside the ledger, for `plat audit verify`; those that were there stay, since they signed what is in it. */
function keepKeys(path: string, keyring: Keyring): void {
  const published = keyring.published()
  if (published.length === 0) return
  const file = keysPath(path)
  const before = systemFiles.readWhole(file)
  const old = before === null ? [] : readPublicKeys(Buffer.from(before).toString(), file)
  const known = new Set(published.map(({ kid }) => kid))
  const kept = old.filter(({ kid }) => !known.has(kid)).map(publishedKey)
  const text = `${JSON.stringify({ keys: [...published, ...kept] }, null, 2)}\n`
  if (before === null || Buffer.from(before).toString() !== text) systemFiles.replace(file, Buffer.from(text))
}

/** A key that signs for the first time is published beside the ledger before it signs a head. */
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

/** Null when there is no key: nothing is signed then. HMAC checkpoints alone are made by records and not by time. */
async function openCheckpoints(
  ledger: FileLedger,
  keyring: Keyring,
  { config, metrics, clock, log }: AuditOptions,
): Promise<Checkpoints | null> {
  const keys = await keyring.current()
  if (keys === null) return null
  const path = config.auditPath
  const [genesis] = (await ledgerPage(path, { from: 0, to: null, limit: 1, wants: () => true })).items
  const signedSeq = metrics.gauge('plat_gateway_audit_signed_checkpoint_seq').labels({})
  return Checkpoints.open({
    ledger,
    path,
    ledgerId: String(genesis?.rec.ledgerId),
    keyring,
    everyRecords: config.auditCheckpointEvery,
    everyMs: keys.signer === null ? null : config.auditCheckpointIntervalSeconds * 1000,
    clock,
    log,
    onSigned: (upTo) => signedSeq.set(upTo),
  })
}

/** The series `plat_gateway_audit_*`; a disk that fails and comes back is told in the log as well. */
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
    recovered: (gap) => log.warn({ unrecorded: gap }, 'the audit ledger is written again; the gap is recorded'),
  }
}
