import type { Command } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat costs` and `plat budgets` are written. */
export function addCosts(plat: Command): void {
  plat
    .command('costs')
    .summary('show what agents cost, by session and route')
    .description(
      'Adds up what agents cost, by session and route. Reads the ledger; no gateway has to run. Money of calls under ' +
        'way, or whose process died, stands under HELD: the next start of the gateway counts it as spent.',
    )
    .option('--ledger <file>', 'the ledger file (default: that of the running plat)')
    .addOption(dir())
    .addOption(format())
    .action(async ({ ledger, ...options }) => {
      const [{ costs }, { ledgerPath }] = await Promise.all([import('./costs.ts'), import('../shared/ledger-path.ts')])
      await exitWith(costs({ ...options, path: await ledgerPath(ledger, options.dir) }, terminal))
    })
  plat
    .command('budgets')
    .summary('show what is spent and left of every budget')
    .description(
      'Shows what is spent and left of every budget in the day, month or session that runs now, and when it begins anew. ' +
        'Of a budget that each session has for itself, the sessions that have used it.',
    )
    .addOption(dir())
    .addOption(format())
    .action(async (options) => {
      const { budgets } = await import('./budgets.ts')
      await exitWith(budgets(options, terminal))
    })
}
