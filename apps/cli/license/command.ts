import { type Command, Option } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat license` is written. */
export function addLicense(plat: Command): void {
  plat
    .command('license')
    .description('the licence')
    .command('show')
    .argument('[file]', 'a licence (default: licenseFile of the running plat)')
    .summary('how a licence stands, and what it says')
    .description(
      'Says how a licence stands, and what it says. A licence switches paid features alone, and this version has none.\n' +
        'Exit codes: 0 none, valid or in its grace, 3 invalid or expired.',
    )
    .addOption(new Option('--key <file>', 'PEM file of whoever issues licences (default: the key of this build)'))
    .addOption(dir())
    .addOption(format())
    .action(async (path: string | undefined, options) => {
      const { licenseShow } = await import('./show.ts')
      await exitWith(licenseShow({ ...options, path }, terminal))
    })
}
