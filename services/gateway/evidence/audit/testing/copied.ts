import { cpSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildInfo, type Clock, systemClock, systemIds } from '@plat/core'
import { type Log, silentLog } from '@plat/process'
import { openPostgresState, type PostgresState } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import type { TestPostgres } from '@plat/testkit/postgres/server'
import { createGatewayMetrics } from '../../../metrics.ts'
import { type Audit, type AuditOptions, createAudit } from '../index.ts'
import { keyFiles, type TestKey } from './keys.ts'

export interface CopiedOptions {
  readonly clock?: Clock
  /** Without the database. */
  readonly isAlone?: boolean
  readonly config?: Partial<AuditOptions['config']>
}

/** Gateways' ledgers with checkpoints in this process, each copied to one Postgres server. */
export class CopiedLedgers {
  readonly #postgres: TestPostgres
  readonly #open = new Set<() => Promise<void>>()
  #key: TestKey | null = null

  constructor(postgres: TestPostgres) {
    this.#postgres = postgres
    postgres.beforeClose(async () => {
      for (const close of [...this.#open]) await close()
    })
  }

  /** The key that signs checkpoints of all of them. */
  async key(): Promise<TestKey> {
    this.#key ??= await keyFiles()
    return this.#key
  }

  async open(path: string, { clock = systemClock, config = {}, isAlone = false }: CopiedOptions = {}) {
    const ids = systemIds(systemClock)
    const logged: string[] = []
    const note = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`)
    const log: Log = { ...silentLog, info: note, warn: note, error: note, child: () => log }
    const all = await this.#config(path, config)
    const metrics = createGatewayMetrics(buildInfo('gateway'), all)
    const state = await this.state()
    const copyStore = isAlone ? null : { copies: state.ledgerCopies, heads: state.ledgerHeads }
    const shared = { config: all, env: {}, clock, ids, log, metrics, since: null, onRecord() {} }
    try {
      const audit = await createAudit({ ...shared, headStore: isAlone ? null : state.ledgerHeads, copyStore })
      const close = async () => {
        this.#open.delete(close)
        await audit.close()
        await state.close()
      }
      this.#open.add(close)
      const gauge = (name: string) =>
        Number(new RegExp(`^plat_gateway_audit_${name} (\\S+)$`, 'm').exec(metrics.expose())?.[1])
      return { audit, state, close, logged, gauge, path }
    } catch (error) {
      await state.close()
      throw error
    }
  }

  async #config(path: string, more: Partial<AuditOptions['config']>): Promise<AuditOptions['config']> {
    return {
      auditPath: path,
      auditCheckpointKey: (await this.key()).uri,
      auditCheckpointPQKey: '',
      auditCheckpointPublicKeyFiles: [],
      auditCheckpointIntervalSeconds: 60,
      auditCheckpointEvery: 20,
      auditSegmentBytes: 65_536,
      auditSegmentSeconds: 0,
      auditVerifyBytesPerSecond: 1_048_576,
      ...more,
    }
  }

  /** The database, as one more replica sees it. */
  state(): Promise<PostgresState> {
    return openPostgresState({
      dsn: this.#postgres.dsn,
      schema: 'plat',
      maxConnections: 4,
      seenPath: '',
      pollMs: 100,
      retryMs: 200,
      clock: systemClock,
      ids: systemIds(systemClock),
      warn() {},
      onLead() {},
      onLost() {},
    })
  }
}

/** A folder as the disk of one replica. */
export class TestDisk {
  readonly folder = tempFolder()
  readonly path = join(this.folder, 'audit.jsonl')
  readonly #saved = join(tempFolder(), 'saved')

  save(): void {
    rmSync(this.#saved, { recursive: true, force: true })
    cpSync(this.folder, this.#saved, { recursive: true })
  }

  restore(): void {
    this.delete()
    renameSync(this.#saved, this.folder)
  }

  delete(): void {
    rmSync(this.folder, { recursive: true })
  }
}

/** Appends records that fill files. */
export async function addRecords(audit: Pick<Audit, 'ledgers'>, count: number, members: object = {}): Promise<void> {
  const ledger = audit.ledgers.of('')
  const note = 'x'.repeat(900)
  await Promise.all(
    Array.from({ length: count }, () => ledger.append({ kind: 'admin', action: 'test', note, ...members })),
  )
}
