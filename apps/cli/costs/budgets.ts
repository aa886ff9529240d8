import { type BudgetAmount, type BudgetView, isBudgetView } from '@plat/gateway/budgets'
import { adminList } from '../shared/admin-api.ts'
import { findGateway } from '../shared/gateway.ts'
import { isForPeople, type Output, plain, printList, type WideFormat } from '../shared/output.ts'

export interface BudgetsOptions {
  readonly dir?: string | undefined
  readonly output: WideFormat
}

/** `plat budgets`: what is spent and left of every budget in the window that runs now. */
export async function budgets({ dir, output: format }: BudgetsOptions, output: Output): Promise<number> {
  const { env } = await findGateway(dir)
  const found = (await adminList(env, '/v1/budgets', isBudgetView)).reverse()
  if (found.length === 0 && isForPeople(format)) {
    output.out('no budgets: write a BudgetPolicy, or spec.budget of an Agent')
    return 0
  }
  printList(output, format, found, columns)
  return 0
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
