import type { Verdict } from '@plat/gateway/policy-trial'
import { EXIT } from '../shared/exit-codes.ts'
import { CommandError, type Format, type Output, plain } from '../shared/output.ts'
import { printObject } from '../shared/print.ts'
import { readCall, type WrittenCall, warnOfEngine, withTrial } from './trial.ts'

export interface PolicyTestOptions extends Omit<WrittenCall, 'args'> {
  readonly dir: string
  readonly args?: string | undefined
  /** The verdict that the caller expects. */
  readonly expect?: string | undefined
  readonly output: Format
}

/**
 * `plat policy test`: what the gateway would decide about a call by the resources of a directory.
 * @returns 0 allowed (or as expected), 3 otherwise
 */
export async function policyTest(
  { dir, expect, output: format, args, ...written }: PolicyTestOptions,
  output: Output,
): Promise<number> {
  return withTrial(dir, async (folder) => {
    const call = await readCall(folder.home.dir, { ...written, args: args ?? null })
    const verdict = folder.trial.judge(call)
    if (typeof verdict === 'string') throw new CommandError(verdict, 2)
    printObject(output, format, rowsOf(verdict, await folder.locate(verdict)))
    warnOfEngine(folder, output)
    return verdict.action === (expect ?? 'allow') ? 0 : EXIT.found
  })
}

export function rowsOf(verdict: Verdict, place: string | null): Readonly<Record<string, string>> {
  const { action, possible, code, policy, rule, reason } = verdict
  const rows = {
    verdict: action ?? possible.join(' or '),
    policy: policy ?? '',
    rule: rule ?? '',
    file: place ?? '',
    code: code ?? '',
    reason,
  }
  const present = Object.entries(rows).filter(([, text]) => text !== '')
  return Object.fromEntries(present.map(([name, text]) => [name, plain(text)]))
}

/** @throws CommandError with exit code 2 */
export function requireCall(agent: string | undefined, call: string | undefined): { agent: string; call: string } {
  if (agent !== undefined && call !== undefined) return { agent, call }
  throw new CommandError('name an agent and a call: plat policy test <agent> <server>/<tool>, or tests with -file', 2)
}
