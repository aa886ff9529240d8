import type { Command } from 'commander'
import { dir, exitWith, format, wideFormat } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

export function addApprovals(plat: Command): void {
  const approvals = plat.command('approvals').description('pending approvals')
  const load = () => import('./approvals.ts')
  approvals
    .command('list')
    .summary('list pending approvals')
    .addOption(dir())
    .option('--all', 'include decided, used and expired approvals of the last day')
    .addOption(wideFormat())
    .action(async (options) => exitWith((await load()).approvalsList(options, terminal)))
  approvals
    .command('show')
    .argument('<id>', 'as approvals list shows it')
    .summary('show all details of an approval')
    .addOption(dir())
    .addOption(format())
    .action(async (id: string, options) => exitWith((await load()).approvalsShow({ ...options, id }, terminal)))
  for (const verdict of ['approve', 'deny'] as const) {
    const command = approvals
      .command(verdict)
      .argument('<id>', 'as approvals list shows it')
      .summary(verdict === 'approve' ? 'let the call pass, once' : 'refuse the call')
      .addOption(dir())
      .option('--reason <text>', 'stored in the ledger; the reason of a denial is sent to the agent')
      .addOption(format())
      .action(async (id: string, options) =>
        exitWith((await load()).approvalsDecide({ ...options, id, verdict }, terminal)),
      )
    if (verdict === 'approve')
      command
        .option('--args-sha256 <hex>', 'SHA-256 of the whole arguments, to approve a truncated preview')
        .option('--for-session', 'let later calls of this tool by this session pass too, under the same rule')
  }
  addSessionApprovals(approvals)
  approvals
    .command('watch')
    .summary('show pending approvals as they arrive, and decide each with one key')
    .description(
      'Shows each pending approval. Keys: a approve, d deny (then a reason, and Enter), s skip, q quit. Without a terminal: one line each.',
    )
    .addOption(dir())
    .addOption(format())
    .action(async (options) => {
      const { approvalsWatch } = await import('./watch.ts')
      await exitWith(approvalsWatch(options, terminal))
    })
}

/** Declares `plat approvals sessions` and `lift`. */
function addSessionApprovals(approvals: Command): void {
  const load = () => import('./session-approvals.ts')
  approvals
    .command('sessions')
    .summary('list approvals for the rest of a session')
    .addOption(dir())
    .addOption(wideFormat())
    .action(async (options) => exitWith((await load()).sessionApprovalsList(options, terminal)))
  approvals
    .command('lift')
    .argument('<id>', 'as approvals sessions shows it')
    .summary('end an approval for a session: its later calls need an approval again')
    .addOption(dir())
    .action(async (id: string, options) => exitWith((await load()).sessionApprovalsLift({ ...options, id }, terminal)))
}
