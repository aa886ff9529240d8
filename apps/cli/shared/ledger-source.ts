import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isObject, systemClock } from '@plat/core'
import { type LedgerMoment, type RecordFilter, searchLedger, selectorOf, tailLedger } from '@plat/ledger'
import { isTenantName } from '@plat/tokens'
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

/** Records that `readRecords` collects before it prints the first one. */
const MAX_LAST_FILTERED = 10_000

/** A record with its line, as JSON. */
export interface SourceRecord extends LedgerRecord {
  readonly text: string
}

export interface RecordsWanted {
  /** Only this many last records; absent: all. */
  readonly last?: number
  /** Continues with new records until the signal aborts. */
  readonly follow?: AbortSignal
  readonly filter?: RecordFilter
}

export interface RecordQuery {
  readonly filter?: RecordFilter
  readonly from?: LedgerMoment
  readonly to?: LedgerMoment
  readonly newestFirst?: boolean
  readonly limit?: number
}

/** The ledger that a command means: the one named, else the file of a `plat up` of this machine, else that of the gateway. */
export async function findLedger(path: string | undefined, dir: string | undefined): Promise<LedgerSource> {
  if (path !== undefined) return { path }
  const { home, env } = await findGateway(dir)
  const { PLAT_TENANT: tenant = '' } = process.env
  if (home === null) return { env }
  if (tenant !== '' && !isTenantName(tenant)) throw new CommandError(`PLAT_TENANT: ${tenant} is not a name of a tenant`)
  return { path: join(home.state, ...(tenant === '' ? [] : ['tenants', tenant]), 'audit.jsonl') }
}

/**
 * Yields records in order, those up to now first.
 * @throws CommandError if the file does not exist, or the gateway refuses
 */
export async function* readRecords(source: LedgerSource, wanted: RecordsWanted = {}): AsyncGenerator<SourceRecord> {
  const { last, follow, filter } = wanted
  const head = await lastSeq(source)
  if (last === undefined) yield* searchRecords(source, { ...(filter && { filter }), to: head })
  else if (filter === undefined) yield* searchRecords(source, { from: Math.max(0, head - last + 1), to: head })
  else yield* lastSelected(source, filter, { last, head })
  if (follow !== undefined) yield* followRecords(source, head + 1, follow, filter)
}

async function* lastSelected(
  source: LedgerSource,
  filter: RecordFilter,
  { last, head }: { readonly last: number; readonly head: number },
): AsyncGenerator<SourceRecord> {
  const limit = Math.min(last, MAX_LAST_FILTERED)
  const found = await Array.fromAsync(searchRecords(source, { filter, to: head, newestFirst: true, limit }))
  yield* found.reverse()
}

/**
 * Yields the records that a query selects. Of a gateway those that the roles of the caller allow: an auditor of one namespace gets those of this
 * namespace.
 * @throws CommandError if the file does not exist, or the gateway refuses
 */
export async function* searchRecords(source: LedgerSource, query: RecordQuery): AsyncGenerator<SourceRecord> {
  const { filter = {}, from = 0, to = null, newestFirst = false, limit = Number.MAX_SAFE_INTEGER } = query
  if (limit === 0 || to === -1) return
  if ('path' in source) {
    const { matches: wants, matchesLine: wantsLine } = selectorOf(filter)
    yield* existing(source.path, searchLedger(source.path, { from, to, newestFirst, limit, wants, wantsLine }))
    return
  }
  let left = limit
  const page = Math.min(limit, PAGE_RECORDS)
  const path = `/v1/audit/records?${searchOf({ ...query, filter })}&limit=${page}`
  for await (const record of adminPages(source.env, path, isLedgerRecord)) {
    yield { ...record, text: JSON.stringify(record) }
    if (--left === 0) return
  }
}

/** The query of the admin API. */
function searchOf({ filter = {}, from = 0, to, newestFirst = false }: RecordQuery): string {
  const search = new URLSearchParams({ from: momentText(from), order: newestFirst ? 'newest' : 'oldest' })
  if (to !== undefined) search.set('to', momentText(to))
  for (const [name, value] of Object.entries(filter)) {
    if (value !== undefined && value !== false) search.set(name, String(value))
  }
  return search.toString()
}

function momentText(moment: LedgerMoment): string {
  return typeof moment === 'number' ? String(moment) : moment.at
}

async function* followRecords(
  source: LedgerSource,
  from: number,
  signal: AbortSignal,
  filter: RecordFilter = {},
): AsyncGenerator<SourceRecord> {
  const { matches, matchesLine } = selectorOf(filter)
  if ('path' in source) {
    for await (const line of tailLedger(source.path, { from, follow: { signal, clock: systemClock } })) {
      if (matchesLine(Buffer.from(line.text)) && matches(line.rec)) yield line
    }
    return
  }
  for (let next = from; !signal.aborted; ) {
    for await (const record of searchRecords(source, { from: next })) {
      next = record.seq + 1
      if (matchesLine(Buffer.from(record.text)) && matches(record.rec)) yield record
    }
    await delay(POLL_MS, undefined, { signal }).catch(() => {})
  }
}

/** Number of the last record; -1 when there is none. */
export async function lastSeq(source: LedgerSource): Promise<number> {
  if ('env' in source) return await headSeq(source.env)
  const last = { from: 0, to: null, limit: 1, newestFirst: true, wants: () => true }
  for await (const { seq } of existing(source.path, searchLedger(source.path, last))) return seq
  return -1
}

async function* existing<T>(path: string, records: AsyncGenerator<T>): AsyncGenerator<T> {
  try {
    yield* records
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    throw new CommandError(`${path} does not exist: no call has been governed here yet, or the path is wrong`)
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
