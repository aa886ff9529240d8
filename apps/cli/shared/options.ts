import { type Command, Option } from 'commander'
import { formats, wideFormats } from './output.ts'

export const format = () =>
  new Option('-o, --output <format>', 'how to print: for people (table) or for programs')
    .choices([...formats])
    .default('table')

export const wideFormat = () =>
  new Option('-o, --output <format>', 'how to print: for people (table, wide), names alone, or for programs')
    .choices([...wideFormats])
    .default('table')

export const dir = () => new Option('--dir <dir>', 'the directory of a running plat (default: the nearest one upwards)')

/** Flags that select another gateway than that of the directory. Every command with `-dir` has them. */
export function addGatewayFlags(command: Command): void {
  for (const one of command.commands) addGatewayFlags(one)
  const names = command.options.map(({ long }) => long)
  if (!names.includes('--dir') || names.includes('--admin-url') || LOCAL.has(command.name())) return
  command
    .option('--context <name>', 'a gateway of plat context list')
    .option('--admin-url <url>', 'the admin API of a gateway')
    .option('--token-file <file>', 'file with its token')
}

/** Commands whose `-dir` is a folder to read. */
const LOCAL: ReadonlySet<string> = new Set(['test'])

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
