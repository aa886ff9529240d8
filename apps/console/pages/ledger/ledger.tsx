import { useEffect, useState } from 'preact/hooks'
import type { Result } from '../../api/client.ts'
import { numberIn, textIn } from '../../api/client.ts'
import { type Pages, useLoaded, usePages } from '../../app/query.ts'
import { goTo, linkTo } from '../../app/route.ts'
import { useShared } from '../../app/session.ts'
import { absoluteTime, count } from '../../ui/format.ts'
import { Badge, Fact, Facts, PageHead, Problem, Section } from '../../ui/parts.tsx'
import { type Column, NoRows, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'
import { plainText } from '../../ui/visible.ts'
import { Evidence } from './evidence.tsx'
import { ExportButton } from './export.tsx'
import { Segments } from './segments.tsx'

type Line = Result<'GET /v1/audit/records'>['items'][number]

const FILTERS = ['text', 'agent', 'session', 'user', 'server', 'tool', 'call'] as const
/** The first page is short, so that it appears soon. */
const FIRST_PAGE = 200
const PAGE_SIZE = 1_000
/** A search that finds fewer rows goes on by itself for this many pages of 32 MiB. */
const ENOUGH_ROWS = 50
const MAX_PAGES = 8

/** The ledger: its head, a search over all records, and evidence objects. */
export function LedgerPage({ query }: { readonly query: URLSearchParams }) {
  const { client } = useShared()
  const only = query.get('only') ?? ''
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? '']))
  const conditions = {
    ...filters,
    ...(only === 'denied' && { denied: true }),
    ...(only === 'calls' && { calls: true }),
  }
  const pages = usePages(query.toString(), (cursor, signal) =>
    client.call('GET /v1/audit/records', {
      query: { ...conditions, order: 'newest', limit: cursor ? PAGE_SIZE : FIRST_PAGE, ...(cursor && { cursor }) },
      signal,
    }),
  )
  useContinuedSearch(pages, query.toString())
  return (
    <>
      <PageHead title="Ledger">
        <ExportButton query={conditions} />
        <button type="button" class="small" onClick={pages.reload}>
          Load newest
        </button>
      </PageHead>
      <Head />
      <Search key={query.toString()} values={{ ...filters, only }} />
      <Table
        label="Records"
        columns={COLUMNS}
        pages={pages}
        keyOf={({ seq }) => String(seq)}
        open={({ seq }) => goTo(linkTo('ledger', seq))}
        empty={<NoRows title="No record matches">Search for another text, or clear the fields.</NoRows>}
      />
      <Segments />
      <Evidence />
    </>
  )
}

/** A page of a search may hold few records, since it reads a limited part of the ledger. */
function useContinuedSearch(pages: Pages<Line>, key: string): void {
  const [loaded, setLoaded] = useState({ key, count: 0 })
  const rows = pages.data?.length ?? 0
  useEffect(() => {
    const count = loaded.key === key ? loaded.count : 0
    if (pages.data === null || rows >= ENOUGH_ROWS || pages.more === null || pages.error !== null || count >= MAX_PAGES)
      return
    setLoaded({ key, count: count + 1 })
    pages.more()
  })
}

function Search({ values }: { readonly values: Readonly<Record<string, string>> }) {
  const [fields, setFields] = useState(values)
  const submit = (event: Event) => {
    event.preventDefault()
    goTo(linkTo('ledger', undefined, fields))
  }
  return (
    <form class="filters" onSubmit={submit}>
      {FILTERS.map((name) => (
        <label class="field">
          <span>{name}</span>
          <input
            value={fields[name] ?? ''}
            maxLength={256}
            onInput={(event) => setFields({ ...fields, [name]: event.currentTarget.value })}
          />
        </label>
      ))}
      <label class="field">
        <span>only</span>
        <select
          value={fields.only ?? ''}
          onChange={(event) => setFields({ ...fields, only: event.currentTarget.value })}
        >
          <option value="">all records</option>
          <option value="denied">refusals</option>
          <option value="calls">ends of calls</option>
        </select>
      </label>
      <div class="actions">
        <button type="button" onClick={() => goTo(linkTo('ledger'))}>
          Clear
        </button>
        <button type="submit" class="primary">
          Search
        </button>
      </div>
    </form>
  )
}

function Head() {
  const { client } = useShared()
  const { data, error, reload } = useLoaded('head', (signal) => client.call('GET /v1/audit/head', { signal }), {
    topics: ['calls'],
  })
  if (data === null) return error === null ? null : <Problem error={error} retry={reload} />
  const { seq, hash, damagedSegments } = data
  return (
    <Section title="State">
      <Facts>
        <Fact name="Records">{count(seq + 1)}</Fact>
        <Fact name="Hash of the last one">
          <code class="digest">{hash}</code>
        </Fact>
        <Fact name="Sealed segments">
          {damagedSegments.length === 0 ? (
            <Badge tone="good">none is damaged</Badge>
          ) : (
            <Badge tone="bad">{count(damagedSegments.length)} damaged</Badge>
          )}
        </Fact>
      </Facts>
      {damagedSegments.map(({ first, last, problem }) => (
        <p class="problem">
          Records {count(first)} to {count(last)}: <Name of={problem} />
        </p>
      ))}
    </Section>
  )
}

const COLUMNS: readonly Column<Line>[] = [
  { name: 'Record', width: '6rem', isMain: true, cell: ({ seq }) => <a href={linkTo('ledger', seq)}>{count(seq)}</a> },
  { name: 'Time', width: '15rem', cell: ({ rec: { at } }) => absoluteTime(Date.parse(at)) },
  { name: 'Kind', width: '8rem', isMain: true, cell: ({ rec }) => <Name of={rec.kind} /> },
  {
    name: 'Agent and session',
    width: '2fr',
    cell: ({ rec }) => (
      <Name
        of={[textIn(rec, 'namespace'), textIn(rec, 'agent'), textIn(rec, 'session')]
          .filter((part) => part !== null)
          .join('/')}
      />
    ),
  },
  { name: 'User or by', width: '1fr', cell: ({ rec }) => <Name of={textIn(rec, 'user') ?? textIn(rec, 'by')} /> },
  { name: 'Target', width: '2fr', isMain: true, isTitle: true, cell: ({ rec }) => <Target rec={rec} /> },
  {
    name: 'Result',
    width: '9rem',
    isMain: true,
    cell: ({ rec }) => <Name of={resultOf(rec)} />,
  },
]

function resultOf(rec: Line['rec']): string | null {
  if (rec.kind === 'admin') {
    const status = numberIn(rec, 'status')
    // A change is recorded before it is made, and after it with its status.
    return textIn(rec, 'phase') === 'intent' ? 'begins' : status === null ? null : `status ${status}`
  }
  return textIn(rec, 'code') ?? textIn(rec, 'result') ?? textIn(rec, 'event') ?? textIn(rec, 'action')
}

function Target({ rec }: { readonly rec: Line['rec'] }) {
  const parts = [textIn(rec, 'server') ?? textIn(rec, 'route'), textIn(rec, 'tool') ?? textIn(rec, 'method')]
  const ofCall = parts.filter((part) => part !== null).join('/')
  const text = rec.kind === 'admin' ? (textIn(rec, 'action') ?? '') : ofCall
  return (
    <span title={plainText(text)}>
      <Name of={text} />
    </span>
  )
}
