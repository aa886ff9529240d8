import type { Command } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat policy` is written. */
export function addPolicy(plat: Command): void {
  const policy = plat.command('policy').summary('try policies out').description('Tries policies out.')
  policy
    .command('simulate')
    .summary('judge recorded calls by policies that are not in force')
    .description(
      'Judges the calls that stand in the ledger by policies that are not in force, and tells what would change. The running ' +
        'gateway is asked; nothing of it changes.\nExit codes: 0 nothing changes, 3 something does, or depends on arguments that were not kept.',
    )
    .requiredOption(
      '-f, --file <policies.json>',
      'the policies to try: a rendered file, such as a changed copy of .plat/rendered/policies.json',
    )
    .option('--since <time>', 'calls of the last such time (24h), or since a time (RFC 3339)', '24h')
    .option('--agent <name>', 'only calls of this agent: a name of namespace default, or <namespace>/<agent>')
    .addOption(dir())
    .addOption(format())
    .action(async (options) => {
      const { policySimulate } = await import('./simulate.ts')
      await exitWith(policySimulate(options, terminal))
    })
}
