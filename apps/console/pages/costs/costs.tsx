import { useEffect, useState } from 'preact/hooks'
import type { ApiError } from '../../api/client.ts'
import { now } from '../../app/clock.ts'
import { asApiError } from '../../app/query.ts'
import { goTo, linkTo } from '../../app/route.ts'
import { hasRole, useShared } from '../../app/session.ts'
import { count, energy, money } from '../../ui/format.ts'
import { Empty, PageHead, Problem, Section } from '../../ui/parts.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'
import { plainText } from '../../ui/visible.ts'
import { Budgets } from './budgets.tsx'
import { GROUPS, type Group, sum, type Total, Totals } from './totals.ts'

const PERIODS: Readonly<Record<string, number>> = { '1 hour': 1, '24 hours': 24, '7 days': 168, '30 days': 720 }
const HOUR_MS = 3_600_000
const PAGE_SIZE = 1_000
/** More calls are added up on request. */
const CALLS_AT_ONCE = 50_000

/** Budgets with what is left of them, and what calls of a period cost. */
export function CostsPage({ query }: { readonly query: URLSearchParams }) {
  const { session } = useShared()
  const period = query.get('period') ?? '24 hours'
  const group = GROUPS.find((name) => name === query.get('by')) ?? 'agent'
  const show = (changed: Readonly<Record<string, string>>) =>
    goTo(linkTo('costs', undefined, { period, by: group, ...changed }), { replace: true })
  return (
    <>
      <PageHead title="Costs">
        <label class="inline">
          Calls of the last
          <select value={period} onChange={(event) => show({ period: event.currentTarget.value })}>
            {Object.keys(PERIODS).map((name) => (
              <option value={name}>{name}</option>
            ))}
          </select>
        </label>
        <label class="inline">
          by
          <select value={group} onChange={(event) => show({ by: event.currentTarget.value })}>
            {GROUPS.map((name) => (
              <option value={name}>{GROUP_NAMES[name]}</option>
            ))}
          </select>
        </label>
      </PageHead>
      {hasRole(session, 'auditor') ? (
        <Spent key={period} hours={PERIODS[period] ?? 24} group={group} />
      ) : (
        <p class="note">Adding up calls needs the role auditor.</p>
      )}
      <Budgets />
    </>
  )
}

const GROUP_NAMES: Readonly<Record<Group, string>> = {
  ...{ agent: 'agent', namespace: 'namespace', group: 'group of the user', user: 'user' },
  ...{ model: 'model', target: 'tool or route', session: 'session', day: 'day (UTC)' },
}

interface Adding {
  readonly totals: Totals
  readonly done: boolean
  readonly cursor: string | null
  readonly error: ApiError | null
}

function Spent({ hours, group }: { readonly hours: number; readonly group: Group }) {
  const [state, addMore] = useTotals(hours)
  const { totals, done, cursor, error } = state
  const rows = totals.by(group)
  return (
    <Section title="Spent">
      <p class="faint" role="status">
        {count(totals.calls)} calls {done ? '' : 'so far, adding up …'}
      </p>
      {group === 'group' && (
        <p class="faint">
          Groups (teams) are those in the token of the user. A call counts in each of them, so their sum can exceed the
          total.
        </p>
      )}
      {error !== null && <Problem error={error} retry={addMore} />}
      {done && cursor !== null && (
        <p class="note">
          These are the last {count(totals.calls)} calls of the period.{' '}
          <button type="button" class="small" onClick={addMore}>
            Add earlier calls
          </button>
        </p>
      )}
      {rows.length > 0 && (
        <Table
          label="Spent"
          columns={columnsOf(group, Math.max(1, ...rows.slice(0, 1).map(sum), ...rows.slice(0, 100).map(sum)))}
          pages={{ data: rows, error: null, loading: false, reload: () => {}, more: null }}
          keyOf={({ name }) => name}
          {...(group === 'session' && { open: ({ name }: Total) => goTo(linkTo('sessions', name)) })}
          empty={null}
        />
      )}
      {done && rows.length === 0 && error === null && (
        <Empty title="No call in this period">Choose a longer one.</Empty>
      )}
    </Section>
  )
}

/** Adds up the calls of a period, page by page. */
function useTotals(hours: number): readonly [Adding, () => void] {
  const { client } = useShared()
  const [state, setState] = useState<Adding>({ totals: new Totals(), done: false, cursor: null, error: null })
  const [from] = useState(() => new Date(now() - hours * HOUR_MS).toISOString())
  const add = async (totals: Totals, start: string | null, signal: AbortSignal) => {
    let cursor = start
    try {
      for (const until = totals.calls + CALLS_AT_ONCE; totals.calls < until; ) {
        const query = {
          from,
          calls: true,
          order: 'newest',
          limit: PAGE_SIZE,
          ...(cursor !== null && { cursor }),
        } as const
        const { items, nextCursor } = await client.call('GET /v1/audit/records', { query, signal })
        totals.add(items)
        cursor = nextCursor
        setState({ totals, done: cursor === null, cursor, error: null })
        if (cursor === null) return
      }
      setState({ totals, done: true, cursor, error: null })
    } catch (error) {
      if (!signal.aborted) setState({ totals, done: true, cursor, error: asApiError(error) })
    }
  }
  const [stop] = useState(() => new AbortController())
  useEffect(() => {
    void add(state.totals, null, stop.signal)
    return () => stop.abort()
  }, [])
  return [state, () => void add(state.totals, state.cursor, stop.signal)]
}

function columnsOf(group: Group, most: number): readonly Column<Total>[] {
  return [
    {
      name: GROUP_NAMES[group],
      width: '3fr',
      isMain: true,
      isTitle: true,
      cell: ({ name }) => <TotalName group={group} name={name} />,
    },
    {
      name: 'Cost',
      width: '9rem',
      isNumber: true,
      isMain: true,
      cell: ({ micros }) => [...micros].map(([currency, amount]) => money(amount, currency)).join(' + ') || '–',
    },
    { name: 'Share', width: '2fr', cell: (total) => <Share of={sum(total) / most} /> },
    { name: 'Calls', width: '6rem', isNumber: true, cell: ({ calls }) => count(calls) },
    { name: 'Denied', width: '6rem', isNumber: true, cell: ({ denied }) => count(denied) },
    { name: 'Tokens in', width: '8rem', isNumber: true, cell: ({ promptTokens }) => count(promptTokens) },
    { name: 'Tokens out', width: '8rem', isNumber: true, cell: ({ completionTokens }) => count(completionTokens) },
    {
      name: 'Energy',
      width: '9rem',
      isNumber: true,
      cell: ({ minMicroWh, maxMicroWh }) => (maxMicroWh === 0 ? '–' : energy(minMicroWh, maxMicroWh)),
    },
  ]
}

function TotalName({ group, name }: { readonly group: Group; readonly name: string }) {
  if (group !== 'session') return <Name of={name} />
  return (
    <a href={linkTo('sessions', name)} title={plainText(name)}>
      <Name of={name} />
    </a>
  )
}

function Share({ of }: { readonly of: number }) {
  if (of === 0) return <span class="faint">–</span>
  return (
    <span class="waterfall" aria-hidden="true">
      <span class="bar info" style={{ left: '0', width: `${(of * 100).toFixed(2)}%` }} />
    </span>
  )
}
