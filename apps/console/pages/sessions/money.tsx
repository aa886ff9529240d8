import { count, energy, money } from '../../ui/format.ts'
import { Section } from '../../ui/parts.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Name } from '../../ui/text.tsx'
import { sum, type Total, Totals } from '../costs/totals.ts'
import type { Line } from './entries.ts'

/** Where the money and the energy of one session went, by tool or route. Nothing for a session without costs. */
export function SessionMoney({ lines, isWhole }: { readonly lines: readonly Line[]; readonly isWhole: boolean }) {
  const totals = new Totals()
  totals.add(lines.filter(({ rec }) => rec.kind === 'outcome'))
  const rows = totals.by('target').filter((one) => sum(one) > 0 || one.maxMicroWh > 0)
  if (rows.length === 0) return null
  return (
    <Section title="Where its money went">
      {!isWhole && <p class="faint">Of the records that are loaded.</p>}
      <Table
        label="Costs of the session"
        columns={COLUMNS}
        pages={{ data: rows, error: null, loading: false, reload: () => {}, more: null }}
        keyOf={({ name }) => name}
        empty={null}
      />
    </Section>
  )
}

const COLUMNS: readonly Column<Total>[] = [
  { name: 'Tool or route', width: '3fr', isMain: true, isTitle: true, cell: ({ name }) => <Name of={name} /> },
  {
    name: 'Cost',
    width: '9rem',
    isNumber: true,
    isMain: true,
    cell: ({ micros }) => [...micros].map(([currency, amount]) => money(amount, currency)).join(' + ') || '–',
  },
  { name: 'Calls', width: '5rem', isNumber: true, cell: ({ calls }) => count(calls) },
  { name: 'Tokens in', width: '7rem', isNumber: true, cell: ({ promptTokens }) => count(promptTokens) },
  { name: 'Tokens out', width: '7rem', isNumber: true, cell: ({ completionTokens }) => count(completionTokens) },
  {
    name: 'Energy',
    width: '9rem',
    isNumber: true,
    cell: ({ minMicroWh, maxMicroWh }) => (maxMicroWh === 0 ? '–' : energy(minMicroWh, maxMicroWh)),
  },
]
