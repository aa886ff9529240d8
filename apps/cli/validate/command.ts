import type { Command } from 'commander'
import { exitWith } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat validate` is written. */
export function addValidate(plat: Command): void {
  plat
    .command('validate')
    .argument('[dir]', 'holds resources/ and, if you like, gateway.json', '.')
    .summary('check the resources of a directory before they are in force')
    .description(
      'Prints what plat up would refuse of the resources of a directory, one line each, and starts nothing. ' +
        'Resources that are too large for a cluster cause a warning. ' +
        'Exit codes: 0 valid, 3 something is refused.',
    )
    .action(async (dir: string) => {
      const { validateResources } = await import('./validate.ts')
      await exitWith(validateResources({ dir }, terminal))
    })
}
