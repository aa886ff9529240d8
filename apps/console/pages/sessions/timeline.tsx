import { goTo, linkTo } from '../../app/route.ts'
import { absoluteTime, count, duration, money } from '../../ui/format.ts'
import { Badge, Empty } from '../../ui/parts.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'
import { plainText } from '../../ui/visible.ts'
import type { Entry } from './entries.ts'

/** Events of a session in order, each with a bar from its beginning to its end. */
export function Timeline({
  entries,
  more = null,
}: {
  readonly entries: readonly Entry[]
  readonly more?: (() => void) | null
}) {
  const { from, to } = spanOf(entries)
  return (
    <Table
      label="Timeline"
      columns={columnsOf(from, to)}
      pages={{ data: entries, error: null, loading: false, reload: () => {}, more }}
      keyOf={({ key }) => key}
      open={({ seq, approval }) => goTo(approval === null ? linkTo('ledger', seq) : linkTo('approvals', approval))}
      empty={<Empty title="No records yet">The session has made no call that is in the ledger.</Empty>}
    />
  )
}

/** Width of the bar of an event without a duration: `min-width` in the style sheet. */
const LEAST_BAR_PX = 3

/** Beginning of the first and end of the last event. */
function spanOf(entries: readonly Entry[]): { readonly from: number; readonly to: number } {
  let [from, to] = [Number.POSITIVE_INFINITY, 0]
  for (const { startMs, ms } of entries) {
    from = Math.min(from, startMs)
    to = Math.max(to, startMs + (ms ?? 0))
  }
  return { from, to: Math.max(to, from + 1) }
}

function columnsOf(from: number, to: number): readonly Column<Entry>[] {
  return [
    {
      name: 'Start',
      width: '6rem',
      isNumber: true,
      cell: ({ startMs }) => <span title={absoluteTime(startMs)}>+{duration(Math.max(0, startMs - from))}</span>,
    },
    {
      name: 'State',
      width: '10rem',
      isMain: true,
      cell: ({ tone, state, approval }) => <State tone={tone} state={state} approval={approval} />,
    },
    {
      name: 'Target',
      width: '2fr',
      isMain: true,
      isTitle: true,
      cell: ({ target }) => (
        <span title={plainText(target)}>
          <Name of={target} />
        </span>
      ),
    },
    { name: 'Waterfall', width: '2fr', cell: (entry) => <Bar entry={entry} from={from} to={to} /> },
    {
      name: 'Time',
      width: '5.5rem',
      isNumber: true,
      cell: ({ ms }) => (ms === null ? '' : duration(ms)),
    },
    {
      name: 'Cost',
      width: '8rem',
      isNumber: true,
      cell: ({ costMicros, currency }) => (costMicros === null || costMicros === 0 ? '' : money(costMicros, currency)),
    },
    { name: 'Detail', width: '3fr', cell: ({ detail, traceUrl }) => <Detail text={detail} traceUrl={traceUrl} /> },
    { name: 'Record', width: '5rem', isNumber: true, cell: ({ seq }) => <RecordLink seq={seq} /> },
  ]
}

function RecordLink({ seq }: { readonly seq: number }) {
  return <a href={linkTo('ledger', seq)}>{count(seq)}</a>
}

function State({ tone, state, approval }: Pick<Entry, 'tone' | 'state' | 'approval'>) {
  const badge = (
    <Badge tone={tone}>
      <Name of={state} />
    </Badge>
  )
  return approval === null ? badge : <a href={linkTo('approvals', approval)}>{badge}</a>
}

function Detail({ text, traceUrl }: { readonly text: string; readonly traceUrl: string | null }) {
  return (
    <span title={plainText(text, 500)}>
      {traceUrl !== null && /^https?:\/\//.test(traceUrl) && (
        <>
          <a href={traceUrl} target="_blank" rel="noreferrer noopener">
            trace
          </a>{' '}
        </>
      )}
      <Name of={text} />
    </span>
  )
}

function Bar({
  entry: { startMs, ms, tone },
  from,
  to,
}: {
  readonly entry: Entry
  readonly from: number
  readonly to: number
}) {
  const share = (value: number) => `${((value / (to - from)) * 100).toFixed(3)}%`
  return (
    <span class="waterfall" aria-hidden="true">
      <span
        class={`bar ${tone}`}
        style={{ left: `min(${share(startMs - from)}, 100% - ${LEAST_BAR_PX}px)`, width: share(ms ?? 0) }}
      />
    </span>
  )
}
