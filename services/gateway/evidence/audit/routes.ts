import { reasonOf, rfc3339Micros } from '@plat/core'
import {
  ArchivedError,
  checkpointsPath,
  earliestOf,
  FILTER_MEMBERS,
  type FleetCursor,
  fleetPage,
  type LedgerQuery,
  lastCheckpoint,
  ledgerPage,
  type NoReceipt,
  newestFirst as newestCheckpoints,
  type PagedLedger,
  type RecordFilter,
  readFleetCursor,
  receiptBeside,
  receiptOfCopy,
  selectorOf,
  writeFleetCursor,
} from '@plat/ledger'
import type { Log } from '@plat/process'
import {
  AdminError,
  type AdminRoutes,
  type Caller,
  flagIn,
  limitOf,
  momentIn,
  parameter,
  queried,
  seqIn,
} from '../../admin/index.ts'
import type { AuditLedger } from './audit-ledger.ts'
import type { Fleet } from './copy/fleet.ts'
import { replicaView } from './copy/replica-view.ts'
import type { Keyring } from './keyring.ts'
import { segmentViews } from './segment-views.ts'

export interface AuditRoutesOptions {
  /** Returns the ledger of a tenant, or null; empty: the fleet's. */
  readonly of: (tenant: string) => Pick<AuditLedger, 'tenant' | 'path' | 'ledger' | 'verification'> | null
  readonly keyring: Keyring
  readonly fleet: Fleet
  /** Why the copy of a ledger is not read, or null. */
  readonly problemOf: (ledgerId: string) => string | null
  readonly log: Log
}

/** Maximum length of a text that records are searched for. */
const TEXT_MAX_CHARS = 256

/** `/v1/audit`: head, records, proofs, checkpoints and their public keys (admin API shapes). */
export function createAuditRoutes({ of, keyring, fleet, problemOf, log }: AuditRoutesOptions): AdminRoutes {
  const ledgerOf = (caller: Caller, query: unknown) => {
    const found = of(caller.tenant(query))
    if (found === null) throw new AdminError('not_found', 'there is no such tenant, or you have no role in it')
    return found
  }
  return {
    mount(context) {
      context.on('GET /v1/audit/head', async ({ query }, _reply, caller) => {
        const { path, ledger, verification } = ledgerOf(caller, query)
        const checkpoint = (await lastCheckpoint(path))?.rec ?? null
        return { ...ledger.head(), checkpoint, damagedSegments: verification?.damaged ?? [] }
      })
      mountRecords(context, { ledgerOf, fleet, problemOf })
      mountProofs(context, { ledgerOf, fleet, log })
      context.on('GET /v1/audit/checkpoints', async ({ query }, _reply, caller) => {
        const { path } = ledgerOf(caller, query)
        const cursor = queried(query, 'cursor')
        const before = cursor === null ? null : seqIn(cursor, 'cursor')
        const { items, next } = await newestCheckpoints(checkpointsPath(path), limitOf(query), before)
        return { items, nextCursor: next === null ? null : String(next) }
      })
      context.on('GET /v1/audit/segments', async ({ query }, _reply, caller) => {
        const { path, verification } = ledgerOf(caller, query)
        const cursor = queried(query, 'cursor')
        const before = cursor === null ? {} : { before: seqIn(cursor.slice(cursor.search(/[1-9]|.$/)), 'cursor') }
        const problemOf = (first: number) => verification?.problemOf(first)
        return await segmentViews(path, { ...before, limit: limitOf(query), problemOf })
      })
      context.on('GET /v1/audit/jwks', () => ({ keys: keyring.published() }))
    },
  }
}

type Context = Parameters<AdminRoutes['mount']>[0]

type LedgerOf = (caller: Caller, query: unknown) => Pick<AuditLedger, 'tenant' | 'path'>

/** Records of this ledger and of those of other replicas. */
function mountRecords(
  context: Context,
  { ledgerOf, fleet, problemOf }: Pick<AuditRoutesOptions, 'fleet' | 'problemOf'> & { readonly ledgerOf: LedgerOf },
): void {
  context.on('GET /v1/audit/replicas', async ({ query }, _reply, caller) => {
    const { tenant } = ledgerOf(caller, query)
    const items = (await fleet.reading(() => fleet.list(tenant))).map((one) => replicaView(one, problemOf))
    return { items, nextCursor: null }
  })
  context.on('GET /v1/audit/records', async ({ query }, _reply, caller) => {
    const { path, tenant } = ledgerOf(caller, query)
    const newestFirst = isNewestFirst(query)
    const filter = filterIn(query)
    const { matches, matchesLine } = selectorOf(filter)
    const wanted = {
      limit: limitOf(query),
      newestFirst,
      wants: (rec: Readonly<Record<string, unknown>>) => caller.sees(ofNamespace(rec), tenant) && matches(rec),
      wantsLine: matchesLine,
    }
    const replica = replicaIn(query)
    const ledgers = replica === null ? [] : await fleet.ledgers(tenant, replica)
    if (ledgers.length > 1) {
      const range = { ...wanted, ...rangeIn(query, filter, newestFirst, null) }
      const cursor = fleetCursorIn(query)
      const { items, next } = await fleet.reading(() => fleetPage(ledgers, range, cursor))
      return { items, nextCursor: writeFleetCursor(next) }
    }
    const one: PagedLedger = ledgers[0] ?? { id: '', path }
    const range = { ...wanted, ...rangeIn(query, filter, newestFirst, queried(query, 'cursor')) }
    const { items, next } = await fleet.reading(() => ledgerPage(one.path, range, one.files))
    return { items, nextCursor: next === null ? null : String(next) }
  })
}

/** Receipts. */
function mountProofs(
  context: Context,
  { ledgerOf, fleet, log }: Pick<AuditRoutesOptions, 'fleet' | 'log'> & { readonly ledgerOf: LedgerOf },
): void {
  context.on('GET /v1/audit/proof/:seq', async ({ params, query }, _reply, caller) => {
    const { path, tenant } = ledgerOf(caller, query)
    const seq = seqIn(parameter(params, 'seq'), 'seq')
    const replica = queried(query, 'replica')
    const [one] = replica === null ? [] : await fleet.ledgers(tenant, replica)
    const made = one?.files === undefined ? receiptBeside(path, seq) : receiptOfCopy(one.path, one.files, seq)
    const receipt = await made.catch((error: unknown) => {
      if (error instanceof ArchivedError) throw new AdminError('not_found', error.message)
      log.error({ seq, error: reasonOf(error) }, 'a proof could not be made')
      throw new AdminError('state_unavailable', 'the tree of the ledger cannot be read now')
    })
    if (typeof receipt === 'string') throw new AdminError('not_found', WHY_NOT[receipt])
    if (!caller.sees(namespaceOf(receipt.line), tenant)) throw new AdminError('not_found', WHY_NOT['no record'])
    return receipt
  })
}

const WHY_NOT: Readonly<Record<NoReceipt, string>> = {
  'no record': 'there is no record of this number',
  'no checkpoint': 'no checkpoint covers this record yet: auditCheckpointIntervalSeconds says when the next one does',
}

/** Returns the range that a page reads. The cursor is the record that it begins with. */
function rangeIn(
  query: unknown,
  { call }: RecordFilter,
  newestFirst: boolean,
  cursor: string | null,
): Pick<LedgerQuery, 'from' | 'to'> {
  const [from, to] = [momentIn(queried(query, 'from'), 'from'), momentIn(queried(query, 'to'), 'to')]
  // The id of a call says when it began: the ledger before is not searched.
  const earliest = call === undefined ? null : earliestOf(call)
  const start = from ?? (earliest === null ? 0 : { at: rfc3339Micros(earliest) })
  if (cursor === null) return { from: start, to }
  const seq = seqIn(cursor, 'cursor')
  return newestFirst ? { from: start, to: seq } : { from: seq, to }
}

function fleetCursorIn(query: unknown): FleetCursor | null {
  const text = queried(query, 'cursor')
  const cursor = text === null ? null : readFleetCursor(text)
  if (text === null || cursor !== null) return cursor
  throw new AdminError('invalid_request', 'cursor: must be the nextCursor of the page before')
}

/** Returns whose records are meant; null: those of the ledger that is open here, since a number names a record of one ledger. */
function replicaIn(query: unknown): string | null {
  const replica = queried(query, 'replica')
  if (replica !== null) return replica
  const isNumber = (name: string) => /^\d+$/.test(queried(query, name) ?? '')
  const namesRecord = isNumber('to') || isNumber('cursor') || (isNumber('from') && queried(query, 'from') !== '0')
  return namesRecord ? null : '*'
}

function isNewestFirst(query: unknown): boolean {
  const order = queried(query, 'order') ?? 'oldest'
  if (order === 'oldest' || order === 'newest') return order === 'newest'
  throw new AdminError('invalid_request', 'order: must be oldest or newest')
}

function filterIn(query: unknown): RecordFilter {
  const members = FILTER_MEMBERS.flatMap((name) => {
    const value = queried(query, name)
    return value === null ? [] : [[name, value] as const]
  })
  const text = queried(query, 'text')
  if (text !== null && (text === '' || text.length > TEXT_MAX_CHARS)) {
    throw new AdminError('invalid_request', `text: must have 1 to ${TEXT_MAX_CHARS} characters`)
  }
  const [denied, calls] = [flagIn(query, 'denied'), flagIn(query, 'calls')]
  return { ...Object.fromEntries(members), denied, calls, ...(text !== null && { text }) }
}

/** Records of a namespace are visible there; others, such as those of checkpoints, to callers with a role everywhere. */
function ofNamespace({ namespace }: Readonly<Record<string, unknown>>): string | null {
  return typeof namespace === 'string' ? namespace : null
}

function namespaceOf(line: string): string | null {
  return ofNamespace(JSON.parse(line).rec)
}
