import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { buildInfo, systemClock, systemIds, TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { type LedgerSegment, LedgerSequence } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { createAudit } from '../../evidence/audit/index.ts'
import { keyFiles } from '../../evidence/audit/testing/keys.ts'
import { createArchive } from '../../evidence/audit-sinks/archive/create.ts'
import { startAuditSinks } from '../../evidence/audit-sinks/index.ts'
import { sinkConfig } from '../../evidence/audit-sinks/testing/fixture.ts'
import type { S3Server } from '../../evidence/audit-sinks/testing/s3.ts'
import { createRetention } from '../../evidence/retention/index.ts'
import type { RetentionOptions } from '../../evidence/retention/options.ts'
import { createGatewayMetrics } from '../../metrics.ts'

export const DAY_MS = 86_400_000
const FAR_FUTURE = Date.UTC(2100, 0, 1)
const none = () => Number.POSITIVE_INFINITY

export interface SetUp {
  readonly archive: 'delete' | 's3' | 'file'
  readonly days?: number
  readonly bytes?: number
  /** Address of a sink. */
  readonly sink?: string
  readonly s3?: S3Server
  readonly collector?: () => number
  readonly anchors?: () => number
  readonly evidence?: RetentionOptions['evidence']
}

/** A ledger of small segments with checkpoints, sinks and retention; its clock is far in the future, so that every file is older than its departure. */
export async function setUp(t: TestContext, own: SetUp) {
  const { archive, days = 0, bytes = 0, sink, s3 } = own
  const { collector = none, anchors = none, evidence = async () => async () => false } = own
  const alive = setInterval(() => {}, 1000)
  t.after(() => clearInterval(alive))
  const auditPath = join(tempFolder(), 'ledger', 'audit.jsonl')
  mkdirSync(join(auditPath, '..'))
  const key = await keyFiles()
  const clock = new TestClock(FAR_FUTURE)
  const secrets = tempFolder()
  writeFileSync(join(secrets, 'access-key-id'), 'AKIA')
  writeFileSync(join(secrets, 'secret-access-key'), 'secret')
  const auditRetention = {
    ...{ archive, days, bytes, path: join(tempFolder(), 'archive'), url: s3?.url ?? '', region: 'eu-1', caFile: '' },
    ...{ awsCredentialsDir: secrets, timeoutSeconds: 20, jurisdiction: '' },
  }
  const config = {
    ...{ auditPath, auditCheckpointKey: key.uri, auditCheckpointPQKey: '', auditCheckpointPublicKeyFiles: [] },
    ...{ auditCheckpointIntervalSeconds: 1_000_000, auditCheckpointEvery: 1_000_000, auditSegmentBytes: 4000 },
    ...{
      auditSegmentSeconds: 0,
      auditVerifyBytesPerSecond: 0,
      auditSegmentCompression: 'none' as const,
      auditRetention,
    },
    auditSinks: sink === undefined ? [] : [sinkConfig({ name: 'siem', type: 'http', url: sink })],
  }
  const metrics = createGatewayMetrics(buildInfo('gateway'), {})
  const logged: string[] = []
  const note = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`)
  const log = { ...silentLog, info: note, warn: note, error: note, child: () => log }
  const ids = systemIds(systemClock)
  const shared = { config, clock, ids, log, metrics, since: null, onRecord() {}, env: {} }
  const audit = await createAudit(shared)
  t.after(() => audit.close())
  const ledger = audit.ledgers.of('')
  const dialer = createDialer({ log: silentLog })
  t.after(() => dialer.close())
  const clouds = { aws: () => assert.fail(), azure: () => assert.fail(), gcp: () => assert.fail() }
  const sinks = await startAuditSinks({ ...shared, head: () => ledger.head(), dialer, clouds })
  t.after(() => sinks.close())
  const start = (change: Partial<Pick<RetentionOptions, 'ledger' | 'list'>> = {}) => {
    const retention = createRetention({
      ...{ ...shared, ...audit.segments, checkpoints: audit.checkpoints, ledger, evidence, ...change },
      received: {
        sinks: () => sinks.delivered(),
        collector,
        anchors,
        copy: () => audit.of('')?.shipper?.shipped ?? Number.POSITIVE_INFINITY,
      },
      archive: createArchive(auditRetention, { dialer, clouds, clock: systemClock }),
    })
    t.after(() => retention.close())
    return retention
  }
  const gauge = (name: string) =>
    Number(new RegExp(`^plat_gateway_audit_${name} (\\S+)$`, 'm').exec(metrics.expose())?.[1])
  return { auditPath, audit, ledger, clock, config, key, logged, shared, dialer, start, gauge }
}

export type Fixture = Awaited<ReturnType<typeof setUp>>

/** Appends records of sessions `s0` to `s<count>`, and returns the segments once there are as many. */
export async function fill({ auditPath, ledger }: Pick<Fixture, 'auditPath' | 'ledger'>, segments: number) {
  for (let count = 0; filesOf(auditPath).length < segments; count++) {
    const names = { namespace: 'default', agent: 'assistant', session: `s${count}` }
    await ledger.append({ kind: 'decision', ...names, reason: 'x'.repeat(300) })
    await new Promise((resolve) => setImmediate(resolve))
  }
  return await listed(auditPath)
}

/** Returns all sealed segments, also those that left. */
export async function listed(auditPath: string) {
  await using sequence = await LedgerSequence.open(auditPath)
  return await Array.fromAsync(sequence.segmentsOf(0, (sequence.parts.at(-1)?.first ?? 0) - 1))
}

export function filesOf(auditPath: string): string[] {
  return readdirSync(join(auditPath, '..')).filter((name) => /\.\d{20}\.jsonl$/.test(name))
}

/** Returns the files of these segments that are still here; others may be sealed meanwhile. */
export function stillHere(auditPath: string, segments: readonly LedgerSegment[]): string[] {
  const names = new Set(segments.map(({ file }) => file))
  return filesOf(auditPath).filter((name) => names.has(name))
}

/** Lets passes run until the state is reached. */
export async function untilPass(
  { clock }: Fixture,
  isReached: () => boolean | Promise<boolean>,
  what: string,
): Promise<void> {
  await until(isReached, what, () => clock.advance(60_000))
}
