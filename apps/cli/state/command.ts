import type { Command } from 'commander'
import { dir, exitWith } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat state` is written. */
export function addState(plat: Command): void {
  const state = plat.command('state').description('the state that several gateways share')
  state
    .command('adopt')
    .summary('go on with a state database that went back in time')
    .description(
      'Confirms that all gateways go on with the state database as it is, after it was restored or lost something. Revoke again what is missing.',
    )
    .addOption(dir())
    .action(async (options) => exitWith((await import('./adopt.ts')).stateAdopt(options, terminal)))
}
