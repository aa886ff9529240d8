import { type Command, Option } from 'commander'
import { exitWith } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat init` is written. */
export function addInit(plat: Command): void {
  plat
    .command('init')
    .argument('[dir]', 'where resources/ is written', '.')
    .summary('write the resources of an agent, with the MCP servers of this machine')
    .description(
      'Prompts for the name of the agent, for the servers of Claude Desktop, Cursor, VS Code and .mcp.json files that it may use, and for the provider of its ' +
        'model, and writes them as resources. Changes nothing that exists; keys and tokens are written into .plat/secrets, which is not committed.',
    )
    .option('--agent <name>', 'name of the agent')
    .option('--servers <names>', 'servers to govern: names separated by commas, all, or none')
    .addOption(new Option('--provider <name>', 'provider of the model: openai, anthropic, gemini, ollama, or none'))
    .option('-y, --yes', 'take the usual answer to every question that no option answers')
    .action(async (dir: string, options) => {
      const { promptOnTerminal, init } = await import('./init.ts')
      const places = { dir, env: process.env }
      await exitWith(promptOnTerminal((prompt) => init({ dir, ...options }, terminal, { prompt, places })))
    })
}
