import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type Clock, systemClock, systemIds } from '@plat/core'
import { type FileLedger, openLedger } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import type { SinkConfig } from '../config.ts'
import type { AuditRecord } from '../formats/words.ts'
import type { SinkMetrics } from '../metrics.ts'
import type { Delivery, Item, Receiver } from '../receivers/receiver.ts'
import { Sink } from '../sink.ts'

/** A sink with the defaults of gateway.json. */
export function sinkConfig(own: Partial<SinkConfig> & Pick<SinkConfig, 'type'>): SinkConfig {
  return {
    name: 'siem',
    tenant: '',
    address: '',
    url: '',
    path: '',
    caFile: '',
    certFile: '',
    keyFile: '',
    serverName: '',
    headersFile: '',
    batchSize: 100,
    pollIntervalMillis: 10,
    facility: 13,
    sdId: 'plat@32473',
    timeoutSeconds: 15,
    tokenFile: '',
    awsCredentialsDir: '',
    dcrImmutableId: '',
    streamName: '',
    chronicleMode: 'logs',
    logType: '',
    region: '',
    jurisdiction: '',
    logGroup: '',
    logStream: '',
    index: '',
    source: '',
    sourceType: 'plat:audit',
    deadLetterPath: '',
    deadLetterMaxBytes: 64 * 1024 * 1024,
    ...own,
  }
}

/** A record as returned by the ledger's reader. */
export function recordOf(rec: Readonly<Record<string, unknown>>, seq = 7): AuditRecord {
  const whole = { at: '2026-03-01T12:00:00.123456Z', replica: 'gw-1', tenant: '', ...rec }
  const hash = 'ab'.repeat(32)
  const text = JSON.stringify({ hash, prev: 'cd'.repeat(32), rec: whole, seq, v: 1 })
  return { seq, hash, rec: whole, text }
}

/** Metrics of one sink. */
export class Counted implements SinkMetrics {
  lagging = Number.NaN
  limit = 0
  failures = 0
  dead = 0
  lag(_sink: string, records: number): void {
    this.lagging = records
  }
  delivered(_sink: string, records: number): void {
    this.limit += records
  }
  failed(): void {
    this.failures++
  }
  deadLettered(): void {
    this.dead++
  }
}

/** A scripted receiver; by default it accepts everything. */
export class ScriptedReceiver implements Receiver {
  /** Record numbers of each delivery. */
  readonly batches: number[][] = []
  /** Accepted record numbers, including repetitions. */
  readonly accepted: number[] = []
  answers: (batch: readonly Item[]) => Delivery | Promise<Delivery> = () => ({ kind: 'accepted' })

  write({ text }: AuditRecord): string {
    return text
  }

  async deliver(batch: readonly Item[]): Promise<Delivery> {
    const numbers = batch.map(({ record }) => record.seq)
    this.batches.push(numbers)
    const delivery = await this.answers(batch)
    if (delivery.kind === 'accepted') {
      const refused = new Set((delivery.refused ?? []).map(({ item }) => item.record.seq))
      this.accepted.push(...numbers.slice(0, delivery.count).filter((seq) => !refused.has(seq)))
    }
    return delivery
  }
}

export interface SinkFixture {
  readonly auditPath: string
  readonly dir: string
  readonly ledger: FileLedger
  /** Appends records and returns the number of the last. */
  fill(count: number): Promise<number>
  lines(): string[]
  /** Starts a sink on the ledger. */
  sink(receiver: Receiver, own?: Partial<SinkConfig>, clock?: Clock): Promise<{ sink: Sink; counted: Counted }>
}

/** A ledger and the other parts of a sink. */
export async function setUpSinks(t: TestContext): Promise<SinkFixture> {
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const dir = `${auditPath}.sinks`
  await mkdir(dir)
  const ids = systemIds(systemClock)
  const ledger = await openLedger({ path: auditPath, tenant: '', replica: 'gw-1', clock: systemClock, ids })
  t.after(() => ledger.close())
  return {
    auditPath,
    dir,
    ledger,
    async fill(count) {
      const rec = (at: number) =>
        ({ kind: 'outcome', op: 'mcp.call', server: 'notes', tool: `t${at}`, status: 200 }) as const
      await Promise.all(Array.from({ length: count }, (_, at) => ledger.append(rec(at))))
      return ledger.head().seq
    },
    lines: () => wholeLines(auditPath),
    async sink(receiver, own = {}, clock = systemClock) {
      const counted = new Counted()
      const config = sinkConfig({ type: 'jsonl', path: '/dev/null', ...own })
      const parts = { config, receiver, auditPath, dir, head: () => ledger.head(), clock, ids, log: silentLog }
      const sink = await Sink.open({ ...parts, metrics: counted })
      t.after(() => sink.close())
      sink.start()
      return { sink, counted }
    },
  }
}
