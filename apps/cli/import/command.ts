import { Argument, type Command } from 'commander'
import { exitCodesLine, findings } from '../shared/exit-codes.ts'
import { exitWith } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'
import { IMPORT_FORMATS } from './formats.ts'

/** How `plat import` is written. */
export function addImport(plat: Command): void {
  plat
    .command('import')
    .addArgument(new Argument('<format>', 'what the file is').choices([...IMPORT_FORMATS]))
    .argument('<file>', 'the file to convert; it is only read')
    .argument('[dir]', 'where resources/ is written', '.')
    .summary('convert the configuration of another program into resources')
    .description(
      'Converts a LiteLLM config.yaml, the MCP servers of Claude Code, Cursor or VS Code (mcp-json), those of Claude Desktop, or the MCP servers of a ' +
        'compose file. Lists with line and reason what was not converted. Changes nothing that exists; keys and tokens are ' +
        'written into .plat/secrets, which is not committed.\n' +
        exitCodesLine(findings.import),
    )
    .option('--agent <name>', 'the agent that may use what is imported', 'assistant')
    .action(async (format, file: string, dir: string, options: { agent: string }) => {
      const { importFile } = await import('./import.ts')
      await exitWith(importFile({ format, file, dir, ...options }, terminal))
    })
}
