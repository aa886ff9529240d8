import { type Clock, rfc3339, systemClock } from '@plat/core'
import { type BudgetAmount, type BudgetView, isBudgetView } from '@plat/gateway/budgets'
import { adminList } from '../shared/admin-api.ts'
import { findGateway } from '../shared/gateway.ts'
import { isForPeople, type Output, plain, type WideFormat } from '../shared/output.ts'
import { printList } from '../shared/print.ts'

export interface BudgetsOptions {
  readonly dir?: string | undefined
  /** Sessions that were not used for a day too. */
  readonly all?: boolean | undefined
  readonly output: WideFormat
}

/** A session without a call for so long is left out, in milliseconds. */
const UNUSED_MS = 86_400_000

/** `plat budgets`: what is spent and left of every budget in the window that runs now. */
export async function budgets(
  { dir, all, output: format }: BudgetsOptions,
  output: Output,
  clock: Pick<Clock, 'now'> = systemClock,
): Promise<number> {
  const { env } = await findGateway(dir)
  const found = (await adminList(env, '/v1/budgets', isBudgetView)).reverse()
  if (found.length === 0 && isForPeople(format)) {
    output.out('no budgets: write a BudgetPolicy, or spec.budget of an Agent')
    return 0
  }
  const since = rfc3339(clock.now() - UNUSED_MS)
  const listed = all === true ? found : found.filter((view) => !isUnused(view, since))
  printList(output, format, listed, columns)
  if (isForPeople(format) && listed.length < found.length)
    output.err(
      `${found.length - listed.length} budgets of sessions without a call for a day are left out: plat budgets -all`,
    )
  return 0
}

/** The budget of a session that was not used since then; a call in progress uses it. */
function isUnused({ window, usedAt, held }: BudgetView, since: string): boolean {
  const isHeld = ('tokens' in held ? held.tokens : held.micros) > 0
  return window === 'session' && !isHeld && usedAt !== null && usedAt < since
}

const columns = {
  budget: ({ budget }: BudgetView) => plain(budget),
  of: ({ subject }: BudgetView) => (subject === '' ? '(none)' : plain(subject ?? '')),
  period: ({ period }: BudgetView) => plain(period),
  cap: ({ cap }: BudgetView) => amountOf(cap),
  spent: ({ spent }: BudgetView) => amountOf(spent),
  held: ({ held }: BudgetView) => amountOf(held),
  left: ({ left }: BudgetView) => amountOf(left),
  resets: ({ resetsAt }: BudgetView) => resetsAt ?? 'never',
}

function amountOf(amount: BudgetAmount): string {
  return 'tokens' in amount ? `${amount.tokens} tokens` : `${(amount.micros / 1e6).toFixed(6)} ${amount.currency}`
}
