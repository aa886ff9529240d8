import { isObject } from '@plat/core'
import { holdsOf, settledOf } from '@plat/ledger'
import { type LedgerSource, searchRecords } from '../shared/ledger-source.ts'
import type { Format, Output } from '../shared/output.ts'
import { printList } from '../shared/print.ts'

export type CostsOptions = LedgerSource & {
  readonly output: Format
}

/** Usage and cost of the calls of one session to one route or tool. Money in millionths of the currency. */
interface CostRow {
  readonly session: string
  /** A model route, or `<server>/<tool>`. */
  readonly route: string
  calls: number
  promptTokens: number
  completionTokens: number
  costMicros: number
  /** Of calls that are under way, or whose process died: counted as spent when the gateway starts again. */
  heldMicros: number
  /** Calls that used tokens and had no price; absent if there are none. */
  unpricedCalls?: number
  /** Empty while no outcome has named one. */
  currency: string
  /** Estimates (docs/spec/gateway.md, `energy`); absent while no outcome has any. */
  energy?: Estimates
}

/** Sums of lower and of upper bounds. */
interface Estimates {
  readonly microWh: Span
  readonly microgCO2e: Span
}

interface Span {
  readonly min: number
  readonly max: number
}

/** Rows that are kept apart; what comes after them is added up in one. */
const MAX_ROWS = 10_000
const OTHERS = '(others)'

/** Shows what agents cost, by session and route, dearest first. Calls that neither cost nor hold anything are left out. */
export async function costs({ output: format, ...source }: CostsOptions, output: Output): Promise<number> {
  const book = new Book()
  // Without the number of a last record: at a gateway those of all replicas are added up.
  for await (const { rec } of searchRecords(source, {})) book.see(rec)
  const rows = book.rows()
  const visible = rows.some(({ energy }) => energy !== undefined) ? { ...columns, ...estimated } : columns
  if (format !== 'table') printList(output, format, rows, visible)
  else if (rows.length === 0) output.out('nothing has cost anything yet')
  else {
    const total = totalOf(rows)
    printList(output, format, [...rows, total], visible)
    if (total.unpricedCalls)
      output.err(`${total.unpricedCalls} calls have no price: plat pricing update writes those of known models`)
  }
  return 0
}

const columns = {
  session: ({ session }: CostRow) => session,
  route: ({ route }: CostRow) => route,
  calls: ({ calls }: CostRow) => String(calls),
  prompt: ({ promptTokens }: CostRow) => String(promptTokens),
  completion: ({ completionTokens }: CostRow) => String(completionTokens),
  cost: costOf,
  held: ({ heldMicros, currency }: CostRow) => money(heldMicros, currency),
}

/** The cost of a row; that of calls without a price is unknown, not zero. */
function costOf({ costMicros, currency, unpricedCalls = 0 }: CostRow): string {
  if (unpricedCalls === 0) return money(costMicros, currency)
  return costMicros === 0 ? 'unknown' : `${money(costMicros, currency)} + unknown`
}

/** Where anything was estimated. */
const estimated = {
  'energy (Wh)': ({ energy }: CostRow) => spanOf(energy?.microWh),
  'CO2e (g)': ({ energy }: CostRow) => spanOf(energy?.microgCO2e),
}

function spanOf(span: Span | undefined): string {
  return span === undefined ? '' : `${(span.min / 1e6).toFixed(3)} - ${(span.max / 1e6).toFixed(3)}`
}

function money(micros: number, currency: string): string {
  return `${(micros / 1e6).toFixed(6)} ${currency}`.trimEnd()
}

function totalOf(rows: readonly CostRow[]): CostRow {
  const sum = (of: (row: CostRow) => number) => rows.reduce((total, row) => total + of(row), 0)
  return {
    session: 'total',
    route: '',
    calls: sum(({ calls }) => calls),
    promptTokens: sum(({ promptTokens }) => promptTokens),
    completionTokens: sum(({ completionTokens }) => completionTokens),
    costMicros: sum(({ costMicros }) => costMicros),
    heldMicros: sum(({ heldMicros }) => heldMicros),
    unpricedCalls: sum(({ unpricedCalls = 0 }) => unpricedCalls),
    currency: rows.find(({ currency }) => currency !== '')?.currency ?? '',
    energy: rows.map(({ energy }) => energy ?? NOTHING).reduce(together, NOTHING),
  }
}

const EMPTY: Span = { min: 0, max: 0 }
const NOTHING: Estimates = { microWh: EMPTY, microgCO2e: EMPTY }

function together(one: Estimates, other: Estimates): Estimates {
  const sum = (of: (each: Estimates) => Span) => ({
    min: of(one).min + of(other).min,
    max: of(one).max + of(other).max,
  })
  return { microWh: sum(({ microWh }) => microWh), microgCO2e: sum(({ microgCO2e }) => microgCO2e) }
}

type Members = Readonly<{ [member: string]: unknown }>

/** Adds up records in the order in which they were written. */
class Book {
  readonly #rows = new Map<string, CostRow>()
  /** Holds of calls without an outcome, by call. */
  readonly #open = new Map<string, { readonly row: CostRow; readonly micros: number }>()

  see(rec: Members): void {
    const call = textOf(rec.call)
    if (rec.kind === 'intent') {
      const micros = Math.max(0, ...holdsOf(rec).map(({ unit, amount }) => (unit === 'micros' ? amount : 0)))
      if (micros === 0) return
      const row = this.#row(rec)
      row.heldMicros += micros
      this.#open.set(call, { row, micros })
    } else if (rec.kind === 'outcome') {
      this.#close(call, rec)
    }
  }

  /** Dearest first. */
  rows(): readonly CostRow[] {
    const weight = ({ costMicros, heldMicros }: CostRow) => costMicros + heldMicros
    return [...this.#rows.values()].toSorted((one, other) => weight(other) - weight(one))
  }

  #close(call: string, rec: Members): void {
    const held = this.#open.get(call)
    this.#open.delete(call)
    if (held !== undefined) held.row.heldMicros -= held.micros
    // A call whose process was killed has no cost; its whole hold counts.
    const cost = typeof rec.costMicros === 'number' ? rec.costMicros : moneyOf(settledOf(rec))
    const usage = isObject(rec.usage) ? rec.usage : {}
    if (cost === 0 && held === undefined && rec.usage === undefined) return
    const row = held?.row ?? this.#row(rec)
    row.calls++
    row.costMicros += cost
    if (cost === 0 && rec.priceId === undefined && countOf(usage.prompt) + countOf(usage.completion) > 0)
      row.unpricedCalls = (row.unpricedCalls ?? 0) + 1
    row.promptTokens += countOf(usage.prompt)
    row.completionTokens += countOf(usage.completion)
    row.currency = textOf(rec.currency) || row.currency
    if (isObject(rec.energy)) row.energy = together(row.energy ?? NOTHING, estimatesIn(rec.energy))
  }

  #row(rec: Members): CostRow {
    const session = [rec.namespace, rec.agent, rec.session].map(textOf).join('/')
    const server = textOf(rec.server)
    const isModel = server.startsWith('llm/')
    const route = isModel ? server.slice('llm/'.length) : [server, textOf(rec.tool)].filter(Boolean).join('/')
    const key = JSON.stringify([session, route])
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    if (this.#rows.size >= MAX_ROWS && session !== OTHERS) return this.#row({ session: OTHERS, server: OTHERS })
    const row = {
      session,
      route,
      calls: 0,
      promptTokens: 0,
      completionTokens: 0,
      costMicros: 0,
      heldMicros: 0,
      currency: '',
    }
    this.#rows.set(key, row)
    return row
  }
}

/** Returns the money that was settled. All windows count the same amount, so it is not a sum. */
function moneyOf(settled: ReadonlyMap<string, number> | null): number {
  return Math.max(0, ...[...(settled ?? [])].map(([key, amount]) => (key.startsWith('usd/') ? amount : 0)))
}

function estimatesIn({ microWh, microgCO2e }: Members): Estimates {
  const span = (value: unknown) => (isObject(value) ? { min: countOf(value.min), max: countOf(value.max) } : EMPTY)
  return { microWh: span(microWh), microgCO2e: span(microgCO2e) }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function countOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
