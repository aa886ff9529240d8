import type { Command } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat policy` is written. */
export function addPolicy(plat: Command): void {
  const policy = plat.command('policy').summary('simulate policies').description('Simulates policies.')
  policy
    .command('simulate')
    .summary('evaluate recorded calls with other policies')
    .description(
      'Evaluates the calls in the ledger with other policies, and prints which decisions would change. The running gateway ' +
        'does it, without any effect on it.\nExit codes: 0 no change, 3 some decisions change, or depend on arguments that were not captured.',
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
