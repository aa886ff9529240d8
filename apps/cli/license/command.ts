import { type Command, Option } from 'commander'
import { exitCodesLine, findings } from '../shared/exit-codes.ts'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat license` is written. */
export function addLicense(plat: Command): void {
  plat
    .command('license')
    .description('the license')
    .command('show')
    .argument('[file]', 'a license (default: that of the running plat or of the gateway)')
    .summary('show the state and content of a license')
    .description(
      'Shows the state and content of a license. A license only enables paid features, and this version has none.\n' +
        exitCodesLine(findings['license show']),
    )
    .addOption(new Option('--key <file>', 'public key (PEM) of the license issuer (default: the key of this build)'))
    .addOption(dir())
    .addOption(format())
    .action(async (path: string | undefined, options) => {
      const { licenseShow } = await import('./show.ts')
      await exitWith(licenseShow({ ...options, path }, terminal))
    })
}
