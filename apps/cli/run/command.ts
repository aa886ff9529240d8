import { type Command, Option } from 'commander'
import { dir, exitWith } from '../shared/options.ts'
import { CommandError, terminal } from '../shared/output.ts'
import { ISOLATION_MODES } from './isolation-modes.ts'

/** How `plat run` is written. */
export function addRun(plat: Command, child: readonly string[]): void {
  plat
    .command('run')
    .argument('<agent>', 'name, or namespace/name')
    .summary('run any local program as a governed agent')
    .description(
      'Runs a program whose calls go through the gateway as this agent. The program gets URLs, never a token:\n' +
        '  PLAT_MCP_CONFIG     an mcp.json that names the MCP servers of the agent\n' +
        '  PLAT_MCP_URL        one address for all of them\n' +
        '  OPENAI_BASE_URL     its model, else all its model routes; with OPENAI_API_KEY\n' +
        '  ANTHROPIC_BASE_URL  the same; with ANTHROPIC_AUTH_TOKEN\n' +
        '  PLAT_GATEWAY_URL    the gateway\n' +
        'All of them lead to a forwarder on loopback, which adds the session token.\n' +
        'Keys in the environment that model SDKs read are replaced by a placeholder.',
    )
    .argument('[command...]', 'behind --, so that its flags are its own')
    .usage('<agent> [options] -- <command> [arguments]')
    .addOption(dir())
    .addOption(
      new Option(
        '--isolate <mode>',
        'hide .plat (keys and tokens) from the program by bubblewrap; auto: where it works',
      )
        .choices(ISOLATION_MODES)
        .default('auto'),
    )
    .addHelpText('after', '\nExample:\n  $ plat run assistant -- node my-agent.js')
    .action(async (agent: string, misplaced: string[], options) => {
      if (misplaced.length > 0)
        throw new CommandError(`put -- before what is to run: plat run ${agent} -- ${misplaced.join(' ')}`, 2)
      const { run } = await import('./run.ts')
      await exitWith(run({ ...options, agent, command: child }, terminal))
    })
}
