import type { Command } from 'commander'
import { exitCodesLine, findings } from '../shared/exit-codes.ts'
import { exitWith } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat validate` is written. */
export function addValidate(plat: Command): void {
  plat
    .command('validate')
    .argument('[dir]', 'holds resources/ and, if you like, gateway.json', '.')
    .summary('check the resources of a directory before they are in force')
    .description(
      'Prints what plat up would refuse of a directory, one line each with file, line and field, and starts nothing. ' +
        'Warnings name what is accepted and probably not meant: rules that match nothing, missing secrets and prices, ' +
        'resources that are too large for a cluster. ' +
        exitCodesLine(findings.validate),
    )
    .option('--strict', 'warnings are errors')
    .action(async (dir: string, { strict = false }: { strict?: boolean }) => {
      const { validateResources } = await import('./validate.ts')
      await exitWith(validateResources({ dir, strict }, terminal))
    })
}
