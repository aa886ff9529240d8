import { memberOf, numberIn, textIn } from '../../api/client.ts'

/** Members that calls can be added up by. */
export const GROUPS = ['agent', 'namespace', 'group', 'user', 'model', 'target', 'session', 'day'] as const
export type Group = (typeof GROUPS)[number]

export interface Total {
  readonly name: string
  calls: number
  denied: number
  /** Millionths, by currency. */
  readonly micros: Map<string, number>
  promptTokens: number
  completionTokens: number
  /** Millionths of a Wh, least and most: of records with an estimate. */
  minMicroWh: number
  maxMicroWh: number
}

interface Line {
  readonly rec: { readonly kind: string; readonly at: string; readonly [member: string]: unknown }
}

/** Sums of calls by every group, filled page by page. */
export class Totals {
  readonly #sums = new Map<Group, Map<string, Total>>(GROUPS.map((group) => [group, new Map()]))
  calls = 0

  add(lines: readonly Line[]): void {
    for (const { rec } of lines) {
      this.calls++
      for (const group of GROUPS) for (const name of namesIn(rec, group)) addTo(this.#total(group, name), rec)
    }
  }

  /** The sums of one group, the highest costs first. */
  by(group: Group): readonly Total[] {
    const totals = [...(this.#sums.get(group)?.values() ?? [])]
    if (group === 'day') return totals.toSorted((a, b) => (a.name < b.name ? 1 : -1))
    return totals.toSorted((a, b) => sum(b) - sum(a) || b.calls - a.calls)
  }

  #total(group: Group, name: string): Total {
    const totals = this.#sums.get(group) ?? new Map<string, Total>()
    const total = totals.get(name) ?? {
      name,
      calls: 0,
      denied: 0,
      micros: new Map(),
      promptTokens: 0,
      completionTokens: 0,
      minMicroWh: 0,
      maxMicroWh: 0,
    }
    totals.set(name, total)
    return total
  }
}

function addTo(total: Total, rec: Line['rec']): void {
  total.calls++
  if (textIn(rec, 'result') === 'denied' || rec.kind === 'decision') total.denied++
  const cost = numberIn(rec, 'costMicros') ?? 0
  const currency = textIn(rec, 'currency') ?? ''
  if (cost > 0) total.micros.set(currency, (total.micros.get(currency) ?? 0) + cost)
  const usage = memberOf(rec, 'usage')
  total.promptTokens += numberIn(usage, 'prompt') ?? 0
  total.completionTokens += numberIn(usage, 'completion') ?? 0
  const energy = memberOf(memberOf(rec, 'energy'), 'microWh')
  total.minMicroWh += numberIn(energy, 'min') ?? 0
  total.maxMicroWh += numberIn(energy, 'max') ?? 0
}

/** Costs of all currencies, for the order alone: budgets and prices have one. */
export function sum({ micros }: Total): number {
  return [...micros.values()].reduce((all, one) => all + one, 0)
}

/** A call of a user with several groups counts in each of them, as in budgets. */
function namesIn(rec: Line['rec'], group: Group): readonly string[] {
  if (group !== 'group') return [nameIn(rec, group)]
  const groups = memberOf(memberOf(rec, 'facts'), 'groups')
  const names = Array.isArray(groups) ? groups.filter((name) => typeof name === 'string') : []
  return names.length === 0 ? ['no group'] : names
}

function nameIn(rec: Line['rec'], group: Exclude<Group, 'group'>): string {
  const namespace = textIn(rec, 'namespace') ?? ''
  if (group === 'agent') return `${namespace}/${textIn(rec, 'agent') ?? ''}`
  if (group === 'namespace') return namespace
  if (group === 'session') return `${namespace}/${textIn(rec, 'agent') ?? ''}/${textIn(rec, 'session') ?? ''}`
  if (group === 'user') return textIn(rec, 'user') ?? 'no user'
  if (group === 'model') return textIn(rec, 'model') ?? 'no model'
  if (group === 'day') return rec.at.slice(0, 10)
  return textIn(rec, 'route') ?? [textIn(rec, 'server'), textIn(rec, 'tool')].filter((part) => part !== null).join('/')
}
