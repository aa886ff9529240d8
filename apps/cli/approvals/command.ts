import type { Command } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat approvals` is written. */
export function addApprovals(plat: Command): void {
  const approvals = plat.command('approvals').description('calls that wait for a person')
  const load = () => import('./approvals.ts')
  approvals
    .command('list')
    .summary('what waits for a decision')
    .addOption(dir())
    .option('--all', 'also what is decided, used or expired, of the last day')
    .addOption(format())
    .action(async (options) => exitWith((await load()).approvalsList(options, terminal)))
  approvals
    .command('show')
    .argument('<id>', 'as approvals list shows it')
    .summary('everything that is known of one')
    .addOption(dir())
    .addOption(format())
    .action(async (id: string, options) => exitWith((await load()).approvalsShow({ ...options, id }, terminal)))
  for (const verdict of ['approve', 'deny'] as const) {
    approvals
      .command(verdict)
      .argument('<id>', 'as approvals list shows it')
      .summary(verdict === 'approve' ? 'let the call pass, once' : 'refuse the call')
      .addOption(dir())
      .option('--reason <text>', 'kept in the ledger; of a denial the agent hears it')
      .addOption(format())
      .action(async (id: string, options) =>
        exitWith((await load()).approvalsDecide({ ...options, id, verdict }, terminal)),
      )
  }
  approvals
    .command('watch')
    .summary('keep this open in a second terminal: who wants what, and one key decides')
    .description(
      'Shows each call that waits. Keys: a approve, d deny, s skip, q quit. Without a terminal: one line each.',
    )
    .addOption(dir())
    .addOption(format())
    .action(async (options) => {
      const { approvalsWatch } = await import('./watch.ts')
      await exitWith(approvalsWatch(options, terminal))
    })
}
