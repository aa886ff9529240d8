import { withoutTrailing } from '@plat/core'
import Table from 'cli-table3'
import { stringify } from 'yaml'
import type { Format, Output, WideFormat } from './output.ts'

/** Width of a terminal that a table fits into, in characters. */
const TABLE_WIDTH = 80
/** Between two columns. */
const GAP = 2
/** Shortest that a cell is cut to. */
const CELL_MIN = 8

/** A number with its noun: `1 session`, `2 sessions`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

export function printData(output: Output, format: 'json' | 'yaml', value: object): void {
  output.out(format === 'json' ? JSON.stringify(value, null, 2) : stringify(value).trimEnd())
}

/** Prints one object: as `name  value` rows, JSON or YAML. */
export function printObject(output: Output, format: Format, value: Readonly<Record<string, string | number>>): void {
  if (format !== 'table') {
    printData(output, format, value)
    return
  }
  const table = plainTable()
  for (const [name, text] of Object.entries(value)) table.push([name, String(text)])
  output.out(withoutPadding(table))
}

/** Prints a list: the items as JSON or YAML, the given columns as a table, or the first of them alone (`name`). */
export function printList<T extends object>(
  output: Output,
  format: WideFormat,
  items: readonly T[],
  columns: Readonly<Record<string, (item: T) => string>>,
): void {
  if (format === 'name') {
    const [name] = Object.values(columns)
    for (const item of items) output.out(name?.(item) ?? '')
    return
  }
  if (format !== 'table' && format !== 'wide') {
    printData(output, format, items)
    return
  }
  const table = plainTable(Object.keys(columns).map((name) => name.toUpperCase()))
  for (const item of items) table.push(Object.values(columns).map((column) => column(item)))
  output.out(withoutPadding(table))
}

type Columns<T> = Readonly<Record<string, (item: T) => string>>

/**
 * Prints a list whose table fits into 80 columns: cells other than those of the first column are cut where they are too long. `wide` prints
 * the further columns too, and cuts none.
 */
export function printWideList<T extends object>(
  output: Output,
  format: WideFormat,
  items: readonly T[],
  { columns, further }: { readonly columns: Columns<T>; readonly further: Columns<T> },
): void {
  if (format === 'wide') printList(output, 'table', items, { ...columns, ...further })
  else if (format === 'table') printList(output, 'table', items, fitted(items, columns))
  else printList(output, format, items, columns)
}

/** The columns with cells cut so that a line has at most 80 characters: the longest cells of columns but the first, so that all stay readable. */
function fitted<T>(items: readonly T[], columns: Columns<T>): Columns<T> {
  const entries = Object.entries(columns)
  const widths = entries.map(([name, cell], at) => {
    const width = Math.max(name.length, ...items.map((item) => cell(item).length))
    return at === 0 ? width : Math.min(width, TABLE_WIDTH)
  })
  while (widths.reduce((sum, width) => sum + width, GAP * (widths.length - 1)) > TABLE_WIDTH) {
    const longest = Math.max(...widths.slice(1))
    if (longest <= CELL_MIN) break
    widths[widths.lastIndexOf(longest)] = longest - 1
  }
  return Object.fromEntries(
    entries.map(([name, cell], at) => [name, (item: T) => cut(cell(item), widths[at] ?? CELL_MIN)]),
  )
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`
}

/** The last column needs no padding: after a long cell it would wrap every line of the terminal. */
function withoutPadding(table: Table.Table): string {
  return table
    .toString()
    .split('\n')
    .map((line) => withoutTrailing(line, ' '))
    .join('\n')
}

/** A table without frames: columns that a person can read and `cut` can take apart. */
function plainTable(head: string[] = []): Table.Table {
  const none = ''
  return new Table({
    head,
    chars: {
      top: none,
      'top-mid': none,
      'top-left': none,
      'top-right': none,
      bottom: none,
      'bottom-mid': none,
      'bottom-left': none,
      'bottom-right': none,
      left: none,
      'left-mid': none,
      mid: none,
      'mid-mid': none,
      right: none,
      'right-mid': none,
      middle: '  ',
    },
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
  })
}
