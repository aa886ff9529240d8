import { CommandError, plain } from '../shared/output.ts'
import type { WrittenCall } from './trial.ts'

/** Counters as the command line has them: `slow=2`, `BudgetPolicy/default/all/day=4.99`, `2000,500`. */
export interface CounterFlags {
  readonly used?: readonly string[] | undefined
  readonly spent?: readonly string[] | undefined
  readonly tokens?: string | undefined
}

/** @throws CommandError with exit code 2 if one is not written so */
export function countersOf({ used, spent, tokens }: CounterFlags): Pick<WrittenCall, 'used' | 'spent' | 'tokens'> {
  const calls = entriesOf(used, '-used', '<rule>=<calls>').map(
    ([name, text]) => [name, wholeOf(text, '-used')] as const,
  )
  return {
    used: Object.fromEntries(calls),
    spent: Object.fromEntries(entriesOf(spent, '-spent', '<budget>=<amount>')),
    ...(tokens !== undefined && { tokens: tokensOf(tokens) }),
  }
}

function entriesOf(texts: readonly string[] = [], flag: string, form: string): readonly (readonly [string, string])[] {
  return texts.map((text) => {
    const at = text.lastIndexOf('=')
    if (at < 1) throw new CommandError(`${flag} ${plain(text)}: must read ${form}`, 2)
    return [text.slice(0, at), text.slice(at + 1)]
  })
}

function tokensOf(text: string) {
  const [input = '', output = '', ...rest] = text.split(',')
  if (rest.length > 0) throw new CommandError(`-tokens ${plain(text)}: must read <input>,<output>`, 2)
  return { input: wholeOf(input, '-tokens'), output: wholeOf(output, '-tokens') }
}

function wholeOf(text: string, flag: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new CommandError(`${flag}: "${plain(text)}" is not a whole number`, 2)
}
