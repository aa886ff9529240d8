import { decisionRecords } from '../shared/decision.ts'
import { EXIT } from '../shared/exit-codes.ts'
import { findGateway } from '../shared/gateway.ts'
import { CommandError, type Format, type Output, plain } from '../shared/output.ts'
import { printObject } from '../shared/print.ts'
import { type LedgerRecord, targetOf, textOf } from '../shared/record.ts'
import { rowsOf } from './test.ts'
import { warnOfEngine, withTrial } from './trial.ts'

export interface PolicyExplainOptions {
  readonly dir?: string | undefined
  readonly id: string
  /** The folder of the policies. Default: the directory of the `plat up` that the command talks to. */
  readonly file?: string | undefined
  readonly output: Format
}

/**
 * `plat policy explain`: the recorded decision of a call, and what the policies of the folder decide about it now.
 * @returns 0 the same, 3 another decision, or one that depends on arguments
 * @throws CommandError if the ledger has no such call
 */
export async function policyExplain(
  { dir, id, file, output: format }: PolicyExplainOptions,
  output: Output,
): Promise<number> {
  const { home, env } = await findGateway(dir)
  const policies = file ?? home?.dir
  const records = await decisionRecords({ env }, id)
  const last = records.findLast(({ rec }) => rec.kind === 'outcome' || rec.kind === 'decision')
  if (last === undefined)
    throw new CommandError(`the ledger has no finished call ${plain(id)}; plat session <id> -o wide lists calls`)
  if (policies === undefined) {
    printObject(output, format, { ...recordedRows(last), now: 'not judged: name the folder of the policies with -f' })
    return EXIT.done
  }
  return withTrial(policies, async (folder) => {
    const judged = folder.trial.judgeRecord(last.rec)
    const now = judged === null ? null : rowsOf(judged.verdict, await folder.locate(judged.verdict))
    printObject(output, format, { ...recordedRows(last), ...(now === null ? NOT_JUDGED : prefixed(now)) })
    warnOfEngine(folder, output)
    return judged === null || judged.verdict.action === judged.was ? EXIT.done : EXIT.found
  })
}

const NOT_JUDGED = { now: 'policies do not judge this call: it was refused before, or needs none' }

function recordedRows({ rec }: LedgerRecord): Readonly<Record<string, string>> {
  const rows = {
    call: textOf(rec.call),
    session: [rec.namespace, rec.agent, rec.session].map(textOf).join('/'),
    target: targetOf(rec),
    recorded: textOf(rec.action),
    policy: textOf(rec.policy),
    rule: textOf(rec.rule),
    code: textOf(rec.code),
    reason: textOf(rec.reason),
  }
  return Object.fromEntries(Object.entries(rows).filter(([, text]) => text !== ''))
}

/** The rows of a verdict beside those of the record. */
function prefixed(rows: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const names: Readonly<Record<string, string>> = { verdict: 'now' }
  return Object.fromEntries(Object.entries(rows).map(([name, text]) => [names[name] ?? `now ${name}`, text]))
}
