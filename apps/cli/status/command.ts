import type { Command } from 'commander'
import { exitCodesLine, findings } from '../shared/exit-codes.ts'
import { dir, exitWith, format, wideFormat } from '../shared/options.ts'
import { type Format, terminal, type WideFormat } from '../shared/output.ts'

/** How `plat status` is written. */
export function addStatus(plat: Command): void {
  plat
    .command('status')
    .summary('show what runs, and what needs attention')
    .description(
      'Shows addresses, resources in force, problems, the head of the ledger, pending approvals and revocations of a running plat. ' +
        exitCodesLine(findings.status),
    )
    .addOption(dir())
    .addOption(wideFormat())
    .action(async (options: { readonly dir?: string; readonly output: WideFormat }) => {
      const { status } = await import('./status.ts')
      await exitWith(status(options, terminal))
    })
}

/** How `plat version` is written. */
export function addVersion(plat: Command): void {
  plat
    .command('version')
    .summary('print version, commit, runtime and platform')
    .addOption(format())
    .action(async ({ output }: { readonly output: Format }) => {
      const { version } = await import('./version.ts')
      await exitWith(version(output, terminal))
    })
}
