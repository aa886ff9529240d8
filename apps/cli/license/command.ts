import { type Command, Option } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat license` is written. */
export function addLicense(plat: Command): void {
  plat
    .command('license')
    .description('the license')
    .command('show')
    .argument('[file]', 'a licence (default: licenseFile of the running plat)')
    .summary('show the state and content of a license')
    .description(
      'Shows the state and content of a license. A license only enables paid features, and this version has none.\n' +
        'Exit codes: 0 none, valid or in its grace period, 3 invalid or expired.',
    )
    .addOption(new Option('--key <file>', 'public key (PEM) of the license issuer (default: the key of this build)'))
    .addOption(dir())
    .addOption(format())
    .action(async (path: string | undefined, options) => {
      const { licenseShow } = await import('./show.ts')
      await exitWith(licenseShow({ ...options, path }, terminal))
    })
}
