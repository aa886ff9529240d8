import type { Command } from 'commander'
import { dir, exitWith } from '../shared/options.ts'
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
}
