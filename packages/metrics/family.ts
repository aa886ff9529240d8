import { type LabelValues, MAX_SERIES, type MetricRow, OTHER } from './row.ts'

export type LabelRecord = Readonly<Record<string, string | number>>

const NO_LABELS: LabelRecord = {}

/** Node of the series tree for a common prefix of labels; the last label leads to one series. */
class Branch<C> {
  series: Series<C> | null = null
  #next: Map<string, Branch<C>> | null = null

  at(value: string): Branch<C> | undefined {
    return this.#next?.get(value)
  }

  grow(value: string): Branch<C> {
    this.#next ??= new Map()
    const known = this.#next.get(value)
    if (known !== undefined) return known
    const branch = new Branch<C>()
    this.#next.set(value, branch)
    return branch
  }
}

interface Series<C> {
  /** The labels as printed between braces. */
  readonly text: string
  readonly cell: C
}

/** All series of one row. `C` is the state of one series. */
export abstract class Family<C> {
  readonly row: MetricRow
  readonly #labels: readonly { name: string; admit: (value: string) => string }[]
  #root = new Branch<C>()
  /** In the order of exposition. */
  #all: Series<C>[] = []

  constructor(row: MetricRow) {
    this.row = row
    this.#labels = Object.entries(row.labels).map(([name, values]) => ({ name, admit: admission(values) }))
    // A series without labels exists from the start; a labelled one appears with its first event.
    if (this.#labels.length === 0) this.cell(NO_LABELS)
  }

  protected abstract create(): C

  /** Returns the lines of one series; `text` are its labels as printed between braces. */
  protected abstract print(cell: C, text: string): string

  /** Returns the series of these labels, created on first use. A missing label counts as `_OTHER`. */
  protected cell(labels: LabelRecord): C {
    let branch: Branch<C> | undefined = this.#root
    // The hot path looks up the given values; only a missing series requires the check of its values.
    for (const { name } of this.#labels) branch = branch?.at(textOf(labels, name))
    return branch?.series?.cell ?? this.#admitted(labels).cell
  }

  /** Removes every series. */
  protected forget(): void {
    this.#root = new Branch()
    this.#all = []
  }

  expose(): string {
    const { name, type, help } = this.row
    let text = `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`
    for (const { text: labels, cell } of this.#all) text += this.print(cell, labels)
    return text
  }

  #admitted(labels: LabelRecord): Series<C> {
    const isFull = this.#all.length >= MAX_SERIES
    const values = this.#labels.map(({ name, admit }) => (isFull ? OTHER : admit(textOf(labels, name))))
    let branch = this.#root
    for (const value of values) branch = branch.grow(value)
    if (branch.series !== null) return branch.series
    const text = this.#labels.map(({ name }, at) => `${name}="${escapeValue(values[at] ?? OTHER)}"`).join(',')
    branch.series = { text, cell: this.create() }
    this.#all.push(branch.series)
    return branch.series
  }
}

function textOf(labels: LabelRecord, name: string): string {
  const value = labels[name] ?? OTHER
  return typeof value === 'string' ? value : String(value)
}

/** Maximum length of a label value in UTF-16 units; values with NUL are never kept. */
const MAX_VALUE_LENGTH = 256

function admission(values: LabelValues): (value: string) => string {
  if (!('cap' in values)) {
    const closed = new Set(values)
    return (value) => (closed.has(value) ? value : OTHER)
  }
  const seen = new Set<string>()
  return (value) => {
    if (seen.has(value)) return value
    if (seen.size >= values.cap || value.length > MAX_VALUE_LENGTH || value.includes('\0')) return OTHER
    seen.add(value)
    return value
  }
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function escapeValue(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"')
}

/** A number as the text format writes it. */
export function printNumber(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}

/** One line of a series. */
export function line(name: string, labels: string, value: number): string {
  return labels === '' ? `${name} ${printNumber(value)}\n` : `${name}{${labels}} ${printNumber(value)}\n`
}
