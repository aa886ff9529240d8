import type { SourceRecord } from '../../shared/ledger-source.ts'
import { type Column, columns } from './columns.ts'

/** Writes records in a format; each call returns the bytes that are complete. */
export interface Encoder {
  begin(): Uint8Array
  add(record: SourceRecord): Uint8Array
  end(): Uint8Array
}

export const exportFormats = ['jsonl', 'csv', 'parquet'] as const
export type ExportFormat = (typeof exportFormats)[number]

const NOTHING = new Uint8Array()
/** Bytes that are collected before they are written. */
const BATCH_BYTES = 256 * 1024

/** The lines of the ledger as they are, so that they verify. */
export function jsonLines(): Encoder {
  return new LinesEncoder('', ({ text }) => `${text}\n`)
}

/** CSV (RFC 4180) with a byte order mark, without which spreadsheet programs do not read UTF-8. */
export function csv(): Encoder {
  const head = columns.map(({ name }) => name).join(',')
  return new LinesEncoder(`\ufeff${head}\r\n`, (record) => {
    const cells = columns.map(({ name, type, value }) => cellOf(value(record), name === 'record' ? 'json' : type))
    return `${cells.join(',')}\r\n`
  })
}

/** Begins a formula in a spreadsheet program, also as a full-width character. */
const FORMULA = /^[\s]*[=+\-@\t\r\n＝＋－＠]/
/** The same within a text: with a decimal comma, spreadsheet programs end cells at semicolons, and pasted text at tabs, also in quotes. */
const INNER_FORMULA = /([;\t][ \u00a0]*)([=+\-@＝＋－＠])/g
const QUOTED = /[",\r\n]/

/** Text of a cell: a formula begins with an apostrophe, and in JSON its sign is escaped, so that the value stays. */
function cellOf(value: string | number | null, type: Column['type'] | 'json'): string {
  if (value === null) return ''
  const text = String(value)
  const safe = type === 'json' ? text.replace(INNER_FORMULA, escaped) : type === 'text' ? plainText(text) : text
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

function plainText(text: string): string {
  return (FORMULA.test(text) ? `'${text}` : text).replace(INNER_FORMULA, "$1'$2")
}

function escaped(_: string, before: string, sign: string): string {
  return `${before}\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`
}

class LinesEncoder implements Encoder {
  readonly #head: string
  readonly #lineOf: (record: SourceRecord) => string
  #lines: string[] = []
  #length = 0

  constructor(head: string, lineOf: (record: SourceRecord) => string) {
    this.#head = head
    this.#lineOf = lineOf
  }

  begin(): Uint8Array {
    return Buffer.from(this.#head)
  }

  add(record: SourceRecord): Uint8Array {
    const line = this.#lineOf(record)
    this.#lines.push(line)
    this.#length += line.length
    return this.#length < BATCH_BYTES ? NOTHING : this.end()
  }

  end(): Uint8Array {
    const bytes = Buffer.from(this.#lines.join(''))
    this.#lines = []
    this.#length = 0
    return bytes
  }
}
