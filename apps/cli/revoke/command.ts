import { type Command, Option } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat revoke` and `plat revocations` is written. */
export function addRevoke(plat: Command): void {
  const load = () => import('./revoke.ts')
  plat
    .command('revoke')
    .argument('<target>', 'all, or <scope>:<name>: session:<ns>/<agent>/<id>, agent:<ns>/<name>, namespace, user, jti')
    .summary('the kill switch: nobody who is named may call any more, and live calls end')
    .description('Nobody who is named may call any more: at once, over restarts, until -for is over or it is lifted.')
    .addOption(dir())
    .addOption(
      new Option('--mode <mode>', 'a suspension is meant to be lifted, and agents are told so')
        .choices(['revoke', 'suspend'])
        .default('revoke'),
    )
    .option('--reason <text>', 'kept in the ledger and shown in the list; agents never hear it')
    .option('--for <duration>', 'until it ends by itself, such as 1h')
    .addOption(format())
    .action(async (target: string, options) => exitWith((await load()).revoke({ ...options, target }, terminal)))
  const revocations = plat.command('revocations').description('who may not call')
  revocations
    .command('list')
    .summary('what is in force')
    .addOption(dir())
    .addOption(format())
    .action(async (options) => exitWith((await load()).revocationsList(options, terminal)))
  revocations
    .command('lift')
    .argument('<id>', 'as revocations list shows it')
    .summary('let them call again')
    .addOption(dir())
    .action(async (id: string, options) => exitWith((await load()).revocationsLift({ ...options, id }, terminal)))
}
