import { Option } from 'commander'
import { formats, wideFormats } from './output.ts'

export const format = () =>
  new Option('-o, --output <format>', 'how to print: for people (table) or for programs')
    .choices([...formats])
    .default('table')

export const wideFormat = () =>
  new Option('-o, --output <format>', 'how to print: for people (table, wide) or for programs')
    .choices([...wideFormats])
    .default('table')

export const dir = () => new Option('--dir <dir>', 'the directory of a running plat (default: the nearest one upwards)')

/** Carries the exit code of an action, because Commander has none. */
export class ExitError extends Error {
  readonly code: number

  constructor(code: number) {
    super()
    this.code = code
  }
}

/** Ends the program with the code of a command, once everything is written. */
export async function exitWith(result: Promise<number>): Promise<void> {
  const code = await result
  if (code !== 0) throw new ExitError(code)
}
