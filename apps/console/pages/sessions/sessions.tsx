import { useEffect, useState } from 'preact/hooks'
import type { Result } from '../../api/client.ts'
import { after } from '../../app/clock.ts'
import { type Pages, usePages } from '../../app/query.ts'
import { goTo, linkTo } from '../../app/route.ts'
import { useShared } from '../../app/session.ts'
import { count } from '../../ui/format.ts'
import { Badge, Money, PageHead, Time } from '../../ui/parts.tsx'
import { type Column, NoRows, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'
import { plainText } from '../../ui/visible.ts'

export type Session = Result<'GET /v1/sessions'>['items'][number]

const PAGE_SIZE = 500
/** While a filter matches fewer rows than this, further pages are loaded. */
const ENOUGH_ROWS = 50
/** Typing ends before the address changes. */
const TYPING_MS = 200

/** All sessions that have called, with a search over their names, users and labels. */
export function SessionsPage({ query }: { readonly query: URLSearchParams }) {
  const { client } = useShared()
  const pages = usePages(
    'sessions',
    (cursor, signal) =>
      client.call('GET /v1/sessions', { query: { limit: PAGE_SIZE, ...(cursor && { cursor }) }, signal }),
    ['session', 'revocation', 'approval', 'denial', 'calls'],
  )
  const filter = { text: query.get('q') ?? '', only: query.get('only') ?? '' }
  const show = (changed: Readonly<Record<string, string>>) =>
    goTo(linkTo('sessions', undefined, { q: filter.text, only: filter.only, ...changed }), { replace: true })
  const isFiltered = filter.text !== '' || filter.only !== ''
  const found = filtered(pages, filter)
  const rows = found.data?.length ?? 0
  useEffect(() => {
    if (isFiltered && rows < ENOUGH_ROWS && pages.more !== null && pages.error === null) pages.more()
  })
  return (
    <>
      <PageHead title="Sessions">
        <Search text={filter.text} show={(q) => show({ q })} />
        <label class="inline">
          Only
          <select value={filter.only} onChange={(event) => show({ only: event.currentTarget.value })}>
            <option value="">all</option>
            <option value="pending">with pending approvals</option>
            <option value="denied">with refusals</option>
            <option value="labels">with labels</option>
            <option value="spent">with costs</option>
          </select>
        </label>
      </PageHead>
      {isFiltered && <p class="faint">{count(pages.data?.length ?? 0)} sessions searched</p>}
      <Table
        label="Sessions"
        columns={COLUMNS}
        pages={found}
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

function Search({ text, show }: { readonly text: string; readonly show: (text: string) => void }) {
  const [value, setValue] = useState(text)
  useEffect(() => (value === text ? undefined : after(TYPING_MS, () => show(value))), [value])
  return (
    <label class="inline grow">
      Search
      <input
        type="search"
        placeholder="agent, session, user or label"
        value={value}
        onInput={(event) => setValue(event.currentTarget.value)}
      />
    </label>
  )
}

function filtered(
  pages: Pages<Session>,
  { text, only }: { readonly text: string; readonly only: string },
): Pages<Session> {
  if (pages.data === null) return pages
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const matches = (session: Session) => {
    const all = [session.id, session.user ?? '', session.tier, ...session.taints].join(' ').toLowerCase()
    return words.every((word) => all.includes(word)) && matchesOnly(session, only)
  }
  return { ...pages, data: pages.data.filter(matches).toSorted((a, b) => (a.lastActivity < b.lastActivity ? 1 : -1)) }
}

function matchesOnly({ pendingApprovals, denied, taints, spent }: Session, only: string): boolean {
  if (only === 'pending') return pendingApprovals > 0
  if (only === 'denied') return denied > 0
  if (only === 'labels') return taints.length > 0
  return only !== 'spent' || spent.micros > 0
}

const COLUMNS: readonly Column<Session>[] = [
  {
    name: 'Session',
    width: '3fr',
    isMain: true,
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
