import { buildInfo } from '@plat/core'
import { Command, CommanderError } from 'commander'
import { doubleDashes, partAtDashes } from './arguments.ts'
import { addCommands } from './commands.ts'
import { addGatewayFlags, ExitError } from './shared/options.ts'
import { CommandError, terminal } from './shared/output.ts'

/** The whole command line in one table; what a command needs is loaded when it runs. */
export function program(child: readonly string[] = []): Command {
  const plat = new Command('plat')
    .description(
      'plat governs AI agents: it authenticates callers, decides which calls are allowed, and records them in a verifiable ledger.',
    )
    .version(buildInfo('cli').version, '-v, --version', 'print the version')
    .exitOverride()
    .configureHelp({
      optionTerm: (option) => option.flags.replace(/--(?=\w)/, '-'),
      commandDescription: (command) => command.description() || command.summary(),
    })
    .configureOutput({
      outputError: (text, write) => write(`${oneLine(text, plat)}\n`),
    })
    .addHelpText(
      'after',
      `
Start here:
  $ plat up .                                     govern the agents of a directory
  $ plat run assistant -- npx my-agent            run any program as that agent
  $ plat approvals watch                          decide what agents may not do alone
  $ plat revoke agent:default/assistant           stop an agent at once
  $ plat pins list                                see which tools changed their descriptions
  $ plat audit tail -f                            watch what agents do`,
    )
  addCommands(plat, child)
  addGatewayFlags(plat)
  plat.hook('preAction', async (_plat, command) => {
    if (!command.options.some(({ long }) => long === '--token-file')) return
    const { useFlags } = await import('./shared/gateway.ts')
    await useFlags(command.opts(), process.env)
  })
  return plat
}

/** Returns an error of the parser as one line with the next step: the name that was meant, else where to look. */
function oneLine(text: string, plat: Command): string {
  const [problem = '', hint = ''] = text
    .replace(/^error: /, 'plat: ')
    .replace(/--(?=\w)/g, '-')
    .trim()
    .split('\n')
  const unknown = problem.endsWith("'") ? problem.slice(0, -1).split("unknown command '", 2)[1] : undefined
  const [, similar] = /^\(Did you mean (.+)\?\)$/.exec(hint) ?? []
  const meant = similar ?? (unknown === undefined ? undefined : placesOf(unknown, plat))
  if (meant !== undefined) return `${problem}; did you mean ${meant}?`
  return `${problem}; ${unknown === undefined ? 'add -help to see how it is written' : 'plat help lists the commands'}`
}

/** Returns the commands that have a command of this name, such as `approvals watch`; undefined when there are none. */
function placesOf(name: string, plat: Command): string | undefined {
  const places = plat.commands
    .filter(({ commands }) => commands.some((command) => command.name() === name))
    .map((parent) => `${parent.name()} ${name}`)
  return places.length === 0 ? undefined : places.join(' or ')
}

/** Runs one command line; answers its exit code. Mistakes are one line on stderr, usage mistakes exit 2. */
export async function main(argv: readonly string[]): Promise<number> {
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', endUnread)
  try {
    const { own, child } = partAtDashes(argv)
    await program(child).parseAsync(doubleDashes(own), { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof ExitError) return error.code
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (!(error instanceof CommandError)) throw error
    terminal.err(`plat: ${error.message}`)
    return error.exitCode
  }
}

/** Called when the reader of a pipe, such as `head`, has ended: so does the command, in order if it handles signals. */
function endUnread(error: Error): void {
  if (!('code' in error) || error.code !== 'EPIPE') throw error
  if (process.listenerCount('SIGTERM') === 0) process.exit(0)
  process.kill(process.pid, 'SIGTERM')
}
