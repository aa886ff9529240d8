/** How a command prints: for people (`table`) or for programs. */
export type Format = 'table' | 'json' | 'yaml'

export const formats: readonly Format[] = ['table', 'json', 'yaml']

/** Also a table with more columns, whose cells are whole, and names alone, one a line. */
export type WideFormat = Format | 'wide' | 'name'

export const wideFormats: readonly WideFormat[] = ['table', 'wide', 'name', 'json', 'yaml']

/** Whether a person reads the output: then an empty list is a sentence. */
export function isForPeople(format: WideFormat): boolean {
  return format === 'table' || format === 'wide'
}

/** An error of the user: one line on stderr with the next step, and an exit code. */
export class CommandError extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Where a command writes; tests collect it. */
export interface Output {
  out(text: string): void
  err(text: string): void
}

export const terminal: Output = {
  out: (text) => void process.stdout.write(`${onScreen(text, process.stdout)}\n`),
  err: (text) => void process.stderr.write(`${onScreen(text, process.stderr)}\n`),
}

/** Characters that JSON and YAML write as they are, although terminals obey them: controls beyond ASCII, and marks that reorder text. */
const OBEYED = /[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu

/** Returns what is printed of a text: on a terminal with such characters as escapes of JSON, otherwise unchanged. */
export function onScreen(text: string, stream: { readonly isTTY?: boolean }): string {
  return stream.isTTY === true ? text.replace(OBEYED, escaped) : text
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}

/** Escapes control characters, so that text from agents cannot manipulate the terminal of an approver. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')
}
