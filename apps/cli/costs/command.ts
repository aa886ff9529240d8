import type { Command } from 'commander'
import { dir, exitWith, format, wideFormat } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat costs` and `plat budgets` are written. */
export function addCosts(plat: Command): void {
  plat
    .command('costs')
    .summary('show the cost of agents by session and route')
    .description(
      'Adds up the cost of agents by session and route. Reads the ledger: that of a plat up of this machine as a file, so that it need not run, else that of the gateway. HELD is money of calls in ' +
        'progress, or whose process was killed: the next start of the gateway counts it as spent.',
    )
    .option('--ledger <file>', 'the ledger file (default: that of the running plat)')
    .addOption(dir())
    .addOption(format())
    .action(async ({ ledger, ...options }) => {
      const [{ costs }, { findLedger }] = await Promise.all([
        import('./costs.ts'),
        import('../shared/ledger-source.ts'),
      ])
      await exitWith(costs({ ...options, ...(await findLedger(ledger, options.dir)) }, terminal))
    })
  plat
    .command('budgets')
    .summary('show spent and remaining amounts of every budget')
    .description(
      'Shows the spent and remaining amount of every budget in its current day, month or session, and when it resets. ' +
        'For budgets per session and templates, lists the sessions, users, groups, agents and models that have used it; sessions without a call for ' +
        'a day only with -all.',
    )
    .option('--all', 'also sessions without a call for a day')
    .addOption(dir())
    .addOption(wideFormat())
    .action(async (options) => {
      const { budgets } = await import('./budgets.ts')
      await exitWith(budgets(options, terminal))
    })
}
