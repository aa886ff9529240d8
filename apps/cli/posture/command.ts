import type { Command } from 'commander'
import { exitCodesLine, findings } from '../shared/exit-codes.ts'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat posture` is written. */
export function addPosture(plat: Command): void {
  plat
    .command('posture')
    .argument('[file]', 'a gateway.json (default: that of the running plat or of the gateway)')
    .summary('report risks of a valid gateway.json, and how to avoid them')
    .description(
      'Reports risks of a valid gateway.json, and how to avoid them. Risks whose IDs are in posture.accept are omitted.\n' +
        exitCodesLine(findings.posture),
    )
    .addOption(dir())
    .addOption(format())
    .action(async (path: string | undefined, options) => {
      const { posture } = await import('./posture.ts')
      await exitWith(posture({ ...options, path }, terminal))
    })
}
