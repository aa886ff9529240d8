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
  out: (text) => void process.stdout.write(`${text}\n`),
  err: (text) => void process.stderr.write(`${text}\n`),
}

/** Escapes control characters, so that text from agents cannot manipulate the terminal of an approver. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?')
}
