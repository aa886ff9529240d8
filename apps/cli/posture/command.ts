import type { Command } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat posture` is written. */
export function addPosture(plat: Command): void {
  plat
    .command('posture')
    .argument('[file]', 'a gateway.json (default: that of the running plat)')
    .summary('what a valid gateway.json risks, and what to set')
    .description(
      'Says what a valid gateway.json risks, and what to set. Risks whose ids stand in posture.accept are not told.\n' +
        'Exit codes: 0 none, 3 some, or the file is invalid.',
    )
    .addOption(dir())
    .addOption(format())
    .action(async (path: string | undefined, options) => {
      const { posture } = await import('./posture.ts')
      await exitWith(posture({ ...options, path }, terminal))
    })
}
