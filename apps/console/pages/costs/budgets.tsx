import type { Result } from '../../api/client.ts'
import { useNow } from '../../app/clock.ts'
import { usePages } from '../../app/query.ts'
import { useShared } from '../../app/session.ts'
import { count } from '../../ui/format.ts'
import { Amount, Badge, Section, Time } from '../../ui/parts.tsx'
import { type Column, NoRows, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'
import { elapsedShare } from './forecast.ts'

type Budget = Result<'GET /v1/budgets'>['items'][number]

const BUDGETS_PAGE = 200

/** Budgets, with what is spent, held and left, and what they will have spent at the end of their window. */
export function Budgets() {
  const { client } = useShared()
  const pages = usePages(
    'budgets',
    (cursor, signal) =>
      client.call('GET /v1/budgets', { query: { limit: BUDGETS_PAGE, ...(cursor && { cursor }) }, signal }),
    ['budget'],
  )
  return (
    <Section title="Budgets">
      <Table
        label="Budgets"
        columns={BUDGET_COLUMNS}
        pages={pages}
        keyOf={({ id, subject }) => `${id} ${subject ?? ''}`}
        empty={<NoRows title="No budget">Set spec.budget of an Agent, or write a BudgetPolicy.</NoRows>}
      />
    </Section>
  )
}

const BUDGET_COLUMNS: readonly Column<Budget>[] = [
  {
    name: 'Budget',
    width: '3fr',
    isMain: true,
    isTitle: true,
    cell: ({ budget, subject }) => <Name of={subject === null ? budget : `${budget} · ${subject}`} />,
  },
  { name: 'Window', width: '5rem', cell: ({ window }) => window },
  { name: 'Used', width: '6rem', isMain: true, cell: (budget) => <Used budget={budget} /> },
  { name: 'Spent', width: '9rem', isNumber: true, cell: ({ spent }) => <Amount of={spent} /> },
  { name: 'Held', width: '8rem', isNumber: true, cell: ({ held }) => <Amount of={held} /> },
  { name: 'Forecast', width: '9rem', isNumber: true, cell: (budget) => <Forecast budget={budget} /> },
  { name: 'Left', width: '9rem', isNumber: true, isMain: true, cell: ({ left }) => <Amount of={left} /> },
  {
    name: 'Resets',
    width: '9rem',
    cell: ({ resetsAt }) => (resetsAt === null ? 'with the session' : <Time at={resetsAt} />),
  },
]

/** Spending at the end of the window, if it goes on as since the beginning. */
function Forecast({ budget }: { readonly budget: Budget }) {
  const { cap, spent, window, resetsAt } = budget
  const nowMs = useNow(60_000)
  const share = resetsAt === null ? null : elapsedShare(window, Date.parse(resetsAt), nowMs)
  if (share === null) return <span class="faint">–</span>
  const value = Math.round(amountOf(spent) / share)
  const forecast = 'tokens' in spent ? { tokens: value } : { micros: value, currency: spent.currency }
  return (
    <span class={value > amountOf(cap) ? 'bad-text' : ''} title="if spending goes on as since the window began">
      <Amount of={forecast} />
    </span>
  )
}

function Used({ budget: { cap, spent, held } }: { readonly budget: Budget }) {
  const [all, used] = [amountOf(cap), amountOf(spent) + amountOf(held)]
  const percent = all === 0 ? 100 : Math.floor((used / all) * 100)
  return <Badge tone={percent >= 100 ? 'bad' : percent >= 80 ? 'warn' : 'good'}>{count(percent)} %</Badge>
}

function amountOf(amount: Budget['cap']): number {
  return 'tokens' in amount ? amount.tokens : amount.micros
}
