import { mapInSlices, rfc3339 } from '@plat/core'
import {
  fleetPage,
  type LedgerLine,
  type LedgerQuery,
  ledgerPage,
  type PagedLedger,
  readFleetCursor,
  writeFleetCursor,
} from '@plat/ledger'
import { AdminError, type AdminRoutes, type Caller, limitOf, may, parameter, queried } from '../../admin/index.ts'
import type { Tenancy } from '../../call/index.ts'
import type { Session, SessionBook, SessionName } from './book.ts'
import { LIST_MAX, type SessionsConfig, TIMELINE_MAX } from './config.ts'
import { idOf, sessionPage } from './order.ts'
import { type SessionSearch, type SessionState, searchIn } from './search.ts'
import { withTraceUrl } from './trace-url.ts'
import { Turns } from './turns.ts'
import type { SessionView } from './view.ts'

export interface SessionRoutesOptions {
  readonly config: SessionsConfig
  readonly book: SessionBook
  /** Returns the ledgers of a tenant on all replicas, the one that is open here first; none if there is no such tenant. */
  readonly ledgersOf: (tenant: string) => Promise<readonly PagedLedger[]>
  /** Runs a read of these ledgers; what is wrong with them becomes an error of the API. */
  readonly reading: <T>(work: () => Promise<T>) => Promise<T>
  readonly tenancy: Tenancy
  readonly pendingApprovals: (session: Readonly<Session>) => number
  readonly taints: (name: SessionName) => readonly string[]
  /** Whether the browser of a session can be viewed by who may. */
  readonly isViewable: (session: Readonly<Session>) => boolean
  /** ISO 4217. */
  readonly currency: () => string
}

/** `/v1/sessions`: sessions and their records (admin API shapes). */
export function createSessionRoutes(options: SessionRoutesOptions): AdminRoutes {
  const { config, book } = options
  const turns = new Turns()
  return {
    mount(context) {
      context.on('GET /v1/sessions', async ({ query }, _reply, caller) => {
        const search = searchIn(query)
        const seen = [...book.sessions()].filter(({ namespace, tenant }) => caller.sees(namespace, tenant))
        const size = { usual: config.listMaxSessions, most: LIST_MAX }
        const found = search === null ? seen : await turns.run(caller.by, () => matching(seen, search, options))
        const { sessions, nextCursor } = sessionPage(found, query, size)
        return { items: sessions.map((one) => viewOf(one, caller, options)), nextCursor }
      })
      context.on('GET /v1/sessions/:id/timeline', async ({ params, query }, _reply, caller) => {
        const { tenant, wants } = recordsOf(parameter(params, 'id'), { query, caller, options })
        const ledgers = await options.ledgersOf(tenant)
        const limit = limitOf(query, { usual: config.timelineMaxItems, most: TIMELINE_MAX })
        const { items, nextCursor } = await options.reading(() => timelinePage(ledgers, query, { limit, wants }))
        return { items: items.map((line) => withTraceUrl(line, config.traceURLTemplate)), nextCursor }
      })
    },
  }
}

/** Selects records by `<namespace>/<agent>/<session>`, or by the session's name if only one agent uses it. */
function recordsOf(
  id: string,
  {
    query,
    caller,
    options,
  }: { readonly query: unknown; readonly caller: Caller; readonly options: SessionRoutesOptions },
) {
  const parts = id.split('/')
  const [session = '', agent, namespace] = parts.toReversed()
  if (session === '' || parts.length === 2 || parts.length > 3) {
    throw new AdminError(
      'invalid_request',
      'id: must be a session, or <namespace>/<agent>/<session> with %2F for each slash',
    )
  }
  // Its namespace says which ledger, unless the query does: a namespace can have been of another tenant.
  const isNamed = namespace !== undefined && queried(query, 'tenant') === null
  const tenant = isNamed ? options.tenancy.of(namespace) : caller.tenant(query)
  const wants = (rec: Readonly<Record<string, unknown>>) => {
    if (rec.session !== session || typeof rec.namespace !== 'string' || !caller.sees(rec.namespace, tenant))
      return false
    return agent === undefined || (rec.agent === agent && rec.namespace === namespace)
  }
  return { tenant, wants }
}

/** A session can have called several replicas: their records are merged by time. */
async function timelinePage(
  ledgers: readonly PagedLedger[],
  query: unknown,
  wanted: Pick<LedgerQuery, 'limit' | 'wants'>,
): Promise<{ readonly items: readonly LedgerLine[]; readonly nextCursor: string | null }> {
  const [one, ...others] = ledgers
  if (one === undefined) throw new AdminError('not_found', 'there is no such tenant, or you have no role in it')
  if (others.length === 0) {
    const { items, next } = await ledgerPage(one.path, { ...wanted, from: cursorOf(query), to: null }, one.files)
    return { items, nextCursor: next === null ? null : String(next) }
  }
  const text = queried(query, 'cursor')
  const cursor = text === null ? null : readFleetCursor(text)
  if (text !== null && cursor === null) throw new AdminError('invalid_request', WRONG_CURSOR)
  const { items, next } = await fleetPage(ledgers, { ...wanted, from: 0, to: null }, cursor)
  return { items, nextCursor: writeFleetCursor(next) }
}

const WRONG_CURSOR = 'cursor: must be the nextCursor of the page before'

function cursorOf(query: unknown): number {
  const text = queried(query, 'cursor') ?? '0'
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new AdminError('invalid_request', WRONG_CURSOR)
}

/** Sessions that match, evaluated in slices: there can be 20,000. */
async function matching(
  sessions: readonly Readonly<Session>[],
  search: SessionSearch,
  state: SessionState,
): Promise<readonly Readonly<Session>[]> {
  const isMatch = await mapInSlices(sessions, (session) => search.matches(session, state))
  return sessions.filter((_, at) => isMatch[at] === true)
}

function viewOf(
  one: Readonly<Session>,
  caller: Caller,
  { pendingApprovals, taints, currency, isViewable }: SessionRoutesOptions,
): SessionView {
  const { namespace, agent, session, user, tier, startedAt, lastActivity, calls, denied } = one
  return {
    id: idOf(one),
    namespace,
    agent,
    session,
    user,
    tier,
    startedAt: rfc3339(startedAt),
    lastActivity: rfc3339(lastActivity),
    calls,
    denied,
    pendingApprovals: pendingApprovals(one),
    taints: taints(one),
    views: isViewable(one) ? viewsFor(one, caller) : [],
    spent: { micros: one.spentMicros, currency: currency() },
  }
}

/** How the caller may view the browser of a session. */
function viewsFor({ namespace, tenant }: Readonly<Session>, { principal }: Caller): readonly ('watch' | 'control')[] {
  const modes = [
    { mode: 'watch', role: 'auditor' },
    { mode: 'control', role: 'admin' },
  ] as const
  return modes.filter(({ role }) => may(principal, role, namespace, tenant)).map(({ mode }) => mode)
}
