import type { Command } from 'commander'
import { dir, exitWith, wideFormat } from '../shared/options.ts'
import { terminal, type WideFormat } from '../shared/output.ts'

interface Options {
  readonly dir?: string
  readonly output: WideFormat
}

/** How `plat sessions`, `plat session` and `plat show` are written. */
export function addSessions(plat: Command): void {
  plat
    .command('sessions')
    .summary('list the sessions that have called')
    .addOption(dir())
    .addOption(wideFormat())
    .action(async (options: Options) => {
      const { sessionsList } = await import('./sessions.ts')
      await exitWith(sessionsList(options, terminal))
    })
  plat
    .command('session')
    .argument('<id>', 'a session as plat sessions lists it, or its name alone')
    .summary('show what a session did, in order')
    .addOption(dir())
    .addOption(wideFormat())
    .action(async (id: string, options: Options) => {
      const { sessionTimeline } = await import('./sessions.ts')
      await exitWith(sessionTimeline({ ...options, id }, terminal))
    })
  plat
    .command('show')
    .argument('<decisionId>', 'the decisionId of a refusal, or a call of plat session -o wide')
    .summary('show one call: who, what, why, and how it ended')
    .addOption(dir())
    .addOption(wideFormat())
    .action(async (id: string, options: Options) => {
      const { showCall } = await import('./show.ts')
      await exitWith(showCall({ ...options, id }, terminal))
    })
}
