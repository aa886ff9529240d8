import type { Command } from 'commander'
import { exitWith } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat config` is written. */
export function addConfig(plat: Command): void {
  plat
    .command('config')
    .description('the gateway configuration')
    .command('validate')
    .argument('<file>', 'a gateway.json')
    .summary('check a gateway.json before it is deployed')
    .description(
      'Prints every problem of a complete gateway.json with its full key path. With plat up that is .plat/gateway.json; ' +
        'the gateway.json beside resources/ only adds to it. Exit codes: 0 valid, 3 on errors.',
    )
    .option('--strict', 'unknown keys and missing files are errors, not warnings')
    .action(async (path: string, options: { strict?: true }) => {
      const { validateConfigFile } = await import('./validate.ts')
      await exitWith(validateConfigFile({ path, strict: options.strict === true, write: terminal.out }))
    })
}
