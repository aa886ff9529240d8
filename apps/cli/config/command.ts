import type { Command } from 'commander'
import { exitCodesLine, findings } from '../shared/exit-codes.ts'
import { exitWith, format } from '../shared/options.ts'
import { type Format, terminal } from '../shared/output.ts'

/** How `plat config` is written. */
export function addConfig(plat: Command): void {
  const config = plat.command('config').description('the gateway configuration')
  addBundle(config)
  config
    .command('validate')
    .argument('<file>', 'a gateway.json')
    .summary('check a gateway.json before it is deployed')
    .description(
      'Prints every problem of a complete gateway.json with its full key path. With plat up that is .plat/gateway.json; ' +
        'the gateway.json beside resources/ only adds to it.\n' +
        exitCodesLine(findings['config validate']),
    )
    .option('--strict', 'unknown keys and missing files are errors, not warnings')
    .action(async (path: string, options: { strict?: true }) => {
      const { validateConfigFile } = await import('./validate.ts')
      await exitWith(validateConfigFile({ path, strict: options.strict === true, write: terminal.out }))
    })
}

interface BundleOptions {
  readonly revision: string
  readonly issuer: string
  readonly key: readonly string[]
  readonly out: string
  readonly expires?: string
  readonly output: Format
}

function addBundle(config: Command): void {
  config
    .command('bundle')
    .argument('<folder>', 'the files of the bundle')
    .summary('create a signed configuration bundle')
    .description(
      'Packs the files of a folder and signs them, for gateways with configBundle. The revision must grow with each bundle.',
    )
    .requiredOption('--revision <number>', 'higher than that of every bundle before')
    .requiredOption('--issuer <name>', 'the issuer, as in configBundle.trustedIssuers')
    .requiredOption('--key <file...>', 'private keys that sign it; of a hybrid pair both')
    .option('--expires <duration>', 'how long it can be applied, such as 24h (default: no limit)')
    .option('--out <file>', 'output file', 'bundle.tar.gz')
    .addOption(format())
    .action(async (folder: string, { key: keys, expires = '', ...options }: BundleOptions) => {
      const { makeBundle } = await import('./bundle.ts')
      const { systemClock } = await import('@plat/core')
      await exitWith(makeBundle({ ...options, folder, keys, expires, clock: systemClock }, terminal))
    })
}
