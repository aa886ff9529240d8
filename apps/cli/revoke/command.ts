import { type Command, Option } from 'commander'
import { dir, exitWith, format, wideFormat } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat revoke` and `plat revocations` is written. */
export function addRevoke(plat: Command): void {
  const load = () => import('./revoke.ts')
  plat
    .command('revoke')
    .argument('<target>', 'all, <ns>/<agent>, <ns>/<agent>/<session>, or <scope>:<name> with namespace, user or jti')
    .summary('the kill switch: refuse all calls of a target, and abort running ones')
    .description(
      'Refuses all calls of a target: at once, across restarts, until -for has passed or the revocation is lifted.',
    )
    .addOption(dir())
    .addOption(
      new Option('--mode <mode>', 'suspend is temporary, which callers can see by the error code')
        .choices(['revoke', 'suspend'])
        .default('revoke'),
    )
    .option('--reason <text>', 'stored in the ledger and shown in the list; never sent to agents')
    .option('--for <duration>', 'expires after this time, such as 1h')
    .option('--dry-run', 'only print what it would end; nothing is revoked')
    .addOption(format())
    .action(async (target: string, options) => exitWith((await load()).revoke({ ...options, target }, terminal)))
  const revocations = plat.command('revocations').description('revocations in force')
  revocations
    .command('list')
    .summary('list revocations in force')
    .addOption(dir())
    .option('--all', 'include those of sessions whose plat run has ended')
    .addOption(wideFormat())
    .action(async (options) => exitWith((await load()).revocationsList(options, terminal)))
  revocations
    .command('lift')
    .argument('<id>', 'as revocations list shows it')
    .summary('lift a revocation')
    .addOption(dir())
    .action(async (id: string, options) => exitWith((await load()).revocationsLift({ ...options, id }, terminal)))
}
