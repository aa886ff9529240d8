import type { Command } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat pins` is written. */
export function addPins(plat: Command): void {
  const load = () => import('./pins.ts')
  const pins = plat
    .command('pins')
    .summary('what servers say of their tools, held against what was agreed to')
    .description(
      'What servers say of their tools, held against what was agreed to.\n\n' +
        'An agent does what the definition of a tool says, so a definition that changes is told, and in mode enforce ' +
        'hidden or refused (toolPins of MCPServer and ToolPolicy). A definition is named by its digest: look, then accept.',
    )
    .addHelpText(
      'after',
      `
Examples:
  $ plat pins list                    which servers changed a tool
  $ plat pins show notes              each tool, and what it is held against
  $ plat pins show notes read         what changed in its definition
  $ plat pins accept notes read       the definition that is offered now is right`,
    )
  pins
    .command('list')
    .summary('servers, and which of their tools changed')
    .addOption(dir())
    .addOption(format())
    .action(async (options) => exitWith((await load()).pinsList(options, terminal)))
  pins
    .command('show')
    .argument('<server>', 'name, or namespace/name')
    .argument('[tool]', 'shows what changed in the definition of one tool')
    .summary('each tool of a server: pinned, drifted or unpinned')
    .addOption(dir())
    .addOption(format())
    .action(async (server: string, tool: string | undefined, options) =>
      exitWith((await load()).pinsShow({ ...options, server, tool }, terminal)),
    )
  pins
    .command('accept')
    .argument('<server>', 'name, or namespace/name')
    .argument('[tools...]', 'tools to accept (default: all that changed or have no pin)')
    .summary('pin the definitions that the server offers now')
    .description(
      'Pins the definitions that the server offers now. Kept over restarts and recorded in the ledger. What resources ' +
        'pin is not overruled: the command says what to write there.\n' +
        'Exit codes: 0 accepted, 1 not all of them.',
    )
    .addOption(dir())
    .addOption(format())
    .action(async (server: string, tools: string[], options) =>
      exitWith((await load()).pinsAccept({ ...options, server, tools }, terminal)),
    )
}
