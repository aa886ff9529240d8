import type { Command } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat state` is written. */
export function addState(plat: Command): void {
  const state = plat.command('state').description('the state that several gateways share')
  state
    .command('adopt')
    .summary('accept a state database that was restored from an older state')
    .description(
      'Confirms that all gateways may use the state database as it is, after a restore or data loss. Repeat missing revocations.',
    )
    .addOption(dir())
    .action(async (options) => exitWith((await import('./adopt.ts')).stateAdopt(options, terminal)))
  state
    .command('move')
    .summary('move the state of a gateway from its files into Postgres')
    .description(
      'Copies what a stopped gateway has in files into an empty database: approvals, spent amounts, taint labels, revocations, owners, ' +
        'connected accounts, notifications and pins. All of it is written in one transaction and read back; the same command can be ' +
        'repeated after an interruption. No file is changed, and ledgers are not moved.',
    )
    .requiredOption('--from <file>', 'its gateway.json, or the directory of a plat up')
    .requiredOption('--to <file>', 'file with the DSN of the database, as stateBackend.dsnFile')
    .option('--schema <name>', 'schema of the tables (default: stateBackend.schema of the gateway.json)')
    .option('--dry-run', 'compare only, and change nothing')
    .addOption(format())
    .action(async (options) => exitWith((await import('./move.ts')).stateMove(options, terminal)))
}
