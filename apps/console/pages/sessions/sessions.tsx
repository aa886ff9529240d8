import { useEffect, useState } from 'preact/hooks'
import type { Result } from '../../api/client.ts'
import { after, now } from '../../app/clock.ts'
import { usePages } from '../../app/query.ts'
import { goTo, linkTo } from '../../app/route.ts'
import { useShared } from '../../app/session.ts'
import { count } from '../../ui/format.ts'
import { Badge, Money, PageHead, Time } from '../../ui/parts.tsx'
import { type Column, NoRows, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'
import { plainText } from '../../ui/visible.ts'

export type Session = Result<'GET /v1/sessions'>['items'][number]

const PAGE_SIZE = 500
/** Typing ends before the address changes. */
const TYPING_MS = 200

const HOUR_MS = 3_600_000
/** Sessions are searched from a full minute, so that a reload repeats the request. */
const MINUTE_MS = 60_000

/** All sessions that have called, the latest first, with a search by the gateway. */
export function SessionsPage({ query }: { readonly query: URLSearchParams }) {
  const { client } = useShared()
  const filter = { q: query.get('q') ?? '', only: query.get('only') ?? '', hours: query.get('hours') ?? '' }
  const pages = usePages(
    JSON.stringify(filter),
    (cursor, signal) =>
      client.call('GET /v1/sessions', {
        query: { ...conditionsOf(filter), order: 'activity', limit: PAGE_SIZE, ...(cursor && { cursor }) },
        signal,
      }),
    ['session', 'revocation', 'approval', 'denial', 'calls'],
  )
  const show = (changed: Partial<typeof filter>) =>
    goTo(linkTo('sessions', undefined, { ...filter, ...changed }), { replace: true })
  const isFiltered = Object.values(filter).some((value) => value !== '')
  return (
    <>
      <PageHead title="Sessions">
        <Search text={filter.q} show={(q) => show({ q })} />
        <label class="inline">
          Only
          <select value={filter.only} onChange={(event) => show({ only: event.currentTarget.value })}>
            <option value="">all</option>
            <option value="pending">with pending approvals</option>
            <option value="denied">with refusals</option>
            <option value="labelled">with labels</option>
            <option value="spent">with costs</option>
          </select>
        </label>
        <label class="inline">
          Active
          <select value={filter.hours} onChange={(event) => show({ hours: event.currentTarget.value })}>
            <option value="">at any time</option>
            <option value="1">in the last hour</option>
            <option value="24">in the last day</option>
            <option value="168">in the last week</option>
          </select>
        </label>
      </PageHead>
      <Table
        label="Sessions"
        columns={COLUMNS}
        pages={pages}
        keyOf={({ id }) => id}
        open={({ id }) => goTo(linkTo('sessions', id))}
        empty={
          isFiltered ? (
            <NoRows title="No session matches">Search for another text, or show all.</NoRows>
          ) : (
            <NoRows title="No session has called yet">
              Run an agent against this gateway: plat run &lt;agent&gt; -- &lt;program&gt;.
            </NoRows>
          )
        }
      />
    </>
  )
}

const ONLY = new Set(['pending', 'denied', 'labelled', 'spent'])

function conditionsOf({ q, only, hours }: { readonly q: string; readonly only: string; readonly hours: string }) {
  const ms = Number(hours) * HOUR_MS
  const from = ms > 0 ? new Date(Math.floor((now() - ms) / MINUTE_MS) * MINUTE_MS).toISOString() : ''
  return { ...(q !== '' && { q }), ...(ONLY.has(only) && { [only]: true }), ...(from !== '' && { from }) }
}

function Search({ text, show }: { readonly text: string; readonly show: (text: string) => void }) {
  const [value, setValue] = useState(text)
  useEffect(() => (value === text ? undefined : after(TYPING_MS, () => show(value))), [value])
  return (
    <label class="inline grow">
      Search
      <input
        type="search"
        placeholder="agent, session, user or label"
        maxLength={256}
        value={value}
        onInput={(event) => setValue(event.currentTarget.value)}
      />
    </label>
  )
}

const COLUMNS: readonly Column<Session>[] = [
  {
    name: 'Session',
    width: '3fr',
    isMain: true,
    isTitle: true,
    cell: ({ id }) => (
      <a href={linkTo('sessions', id)} title={plainText(id)}>
        <Name of={id} />
      </a>
    ),
  },
  { name: 'User', width: '1fr', cell: ({ user }) => <Name of={user} /> },
  { name: 'Last activity', width: '9rem', isMain: true, cell: ({ lastActivity }) => <Time at={lastActivity} /> },
  { name: 'Calls', width: '5rem', isNumber: true, cell: ({ calls }) => count(calls) },
  {
    name: 'Denied',
    width: '5rem',
    isNumber: true,
    isMain: true,
    cell: ({ denied }) => <span class={denied > 0 ? 'bad-text' : ''}>{count(denied)}</span>,
  },
  {
    name: 'Pending',
    width: '5rem',
    isNumber: true,
    cell: ({ pendingApprovals }) => (pendingApprovals > 0 ? <Badge tone="warn">{count(pendingApprovals)}</Badge> : '0'),
  },
  { name: 'Labels', width: '1fr', cell: ({ taints }) => <Name of={taints.join(', ')} /> },
  {
    name: 'Spent',
    width: '8rem',
    isNumber: true,
    cell: ({ spent }) => <Money micros={spent.micros} currency={spent.currency} />,
  },
]
