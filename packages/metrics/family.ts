import { type LabelValues, MAX_SERIES, type MetricRow, OTHER } from './row.ts'

export type LabelRecord = Readonly<Record<string, string | number>>

/** Joins label values to a key; a label value that contains it can only merge two series, never break the exposition. */
const SEPARATOR = '\u0000'

const NO_LABELS: LabelRecord = {}

/** All series of one row. `C` is what is kept per series. */
export abstract class Family<C> {
  readonly row: MetricRow
  readonly #labels: readonly { name: string; admit: (value: string) => string }[]
  readonly #cells = new Map<string, { text: string; cell: C }>()

  constructor(row: MetricRow) {
    this.row = row
    this.#labels = Object.entries(row.labels).map(([name, values]) => ({ name, admit: admission(values) }))
    // Without labels there is one series, and it is there from the start; a labelled one appears with its first event.
    if (this.#labels.length === 0) this.cell(NO_LABELS)
  }

  protected abstract create(): C

  /** Lines of one series; `text` are its labels as they stand between braces. */
  protected abstract print(cell: C, text: string): string

  /** The series of these labels, made on first use. A missing label counts as `_OTHER`. */
  protected cell(labels: LabelRecord): C {
    const known = this.#cells.get(this.#key(labels, false))
    if (known !== undefined) return known.cell
    const key = this.#cells.size < MAX_SERIES ? this.#key(labels, true) : this.#labels.map(() => OTHER).join(SEPARATOR)
    const admitted = this.#cells.get(key)
    if (admitted !== undefined) return admitted.cell
    const values = key.split(SEPARATOR)
    const text = this.#labels.map(({ name }, at) => `${name}="${escapeValue(values[at] ?? OTHER)}"`).join(',')
    const made = { text, cell: this.create() }
    this.#cells.set(key, made)
    return made.cell
  }

  expose(): string {
    const { name, type, help } = this.row
    let text = `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`
    for (const { text: labels, cell } of this.#cells.values()) text += this.print(cell, labels)
    return text
  }

  /** The hot path looks the values up as they come; only a series that is not there asks whether they are admitted. */
  #key(labels: LabelRecord, admitted: boolean): string {
    let key = ''
    for (let at = 0; at < this.#labels.length; at++) {
      const label = this.#labels[at]
      if (label === undefined) continue
      const value = String(labels[label.name] ?? OTHER)
      key += (at === 0 ? '' : SEPARATOR) + (admitted ? label.admit(value) : value)
    }
    return key
  }
}

/** Longest label value that is kept, in UTF-16 units. */
const MAX_VALUE_LENGTH = 256

function admission(values: LabelValues): (value: string) => string {
  if (!('cap' in values)) {
    const closed = new Set(values)
    return (value) => (closed.has(value) ? value : OTHER)
  }
  const seen = new Set<string>()
  return (value) => {
    if (seen.has(value)) return value
    if (seen.size >= values.cap || value.length > MAX_VALUE_LENGTH || value.includes(SEPARATOR)) return OTHER
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
