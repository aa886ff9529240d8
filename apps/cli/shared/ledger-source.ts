import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isObject, systemClock } from '@plat/core'
import { tailLedger } from '@plat/ledger'
import { admin, adminPages } from './admin-api.ts'
import { findGateway } from './gateway.ts'
import type { GatewayEnv } from './home.ts'
import { CommandError } from './output.ts'
import { isLedgerRecord, type LedgerRecord } from './record.ts'

/** A ledger: a file of this machine, or that of a gateway, read by its admin API. */
export type LedgerSource = { readonly path: string } | { readonly env: GatewayEnv }

/** Poll interval of a followed ledger of a gateway, in milliseconds. */
const POLL_MS = 1000
/** Records of a page; the most that the admin API returns. */
const PAGE_RECORDS = 1000

/** A record with its line, as JSON. */
export interface SourceRecord extends LedgerRecord {
  readonly text: string
}

export interface RecordsWanted {
  /** Only this many last records; absent: all. */
  readonly last?: number
  /** Continues with new records until the signal aborts. */
  readonly follow?: AbortSignal
}

/** The ledger that a command means: the one named, else the file of a `plat up` of this machine, else that of the gateway. */
export async function findLedger(path: string | undefined, dir: string | undefined): Promise<LedgerSource> {
  if (path !== undefined) return { path }
  const { home, env } = await findGateway(dir)
  return home === null ? { env } : { path: join(home.state, 'audit.jsonl') }
}

/**
 * Yields records in order.
 * @throws CommandError if the file does not exist, or the gateway refuses
 */
export async function* readRecords(source: LedgerSource, wanted: RecordsWanted = {}): AsyncGenerator<SourceRecord> {
  if ('env' in source) yield* fetchRecords(source.env, wanted)
  else yield* fileRecords(source.path, wanted)
}

async function* fileRecords(path: string, { last, follow }: RecordsWanted): AsyncGenerator<SourceRecord> {
  const options = {
    ...(last !== undefined && { last }),
    ...(follow !== undefined && { follow: { signal: follow, clock: systemClock } }),
  }
  try {
    yield* tailLedger(path, options)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    throw new CommandError(`${path} does not exist: no call has been governed here yet, or the path is wrong`)
  }
}

/** Records that the roles of the caller allow: an auditor of one namespace gets those of this namespace. */
async function* fetchRecords(env: GatewayEnv, { last, follow }: RecordsWanted): AsyncGenerator<SourceRecord> {
  let next = last === undefined ? 0 : Math.max(0, (await headSeq(env)) - last + 1)
  for (;;) {
    for await (const record of recordsFrom(env, next)) {
      next = record.seq + 1
      yield { ...record, text: JSON.stringify(record) }
    }
    if (follow === undefined || follow.aborted) return
    await delay(POLL_MS, undefined, { signal: follow }).catch(() => {})
    if (follow.aborted) return
  }
}

/** Yields the records of a gateway from a number on, and up to another one if given. */
export async function* recordsFrom(env: GatewayEnv, from: number, to?: number): AsyncGenerator<LedgerRecord> {
  const range = `from=${from}${to === undefined ? '' : `&to=${to}`}`
  yield* adminPages(env, `/v1/audit/records?${range}&limit=${PAGE_RECORDS}`, isLedgerRecord)
}

/** Number of the last record of a gateway. */
export async function headSeq(env: GatewayEnv): Promise<number> {
  const head = await admin(env, 'GET', '/v1/audit/head')
  if (isObject(head) && typeof head.seq === 'number') return head.seq
  throw new CommandError('the response of the gateway is not the head of a ledger')
}
