import type { Command } from 'commander'
import { dir, exitWith, format, wideFormat } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

export function addPins(plat: Command): void {
  const load = () => import('./pins.ts')
  const pins = plat
    .command('pins')
    .summary('compare tool definitions of servers with the accepted ones')
    .description(
      'Compares the tool definitions of servers with the accepted ones.\n\n' +
        'An agent follows the definition of a tool, so a changed definition is reported, and in mode enforce hidden or ' +
        'refused (toolPins of MCPServer and ToolPolicy). A definition is identified by its digest: review, then accept.',
    )
    .addHelpText(
      'after',
      `
Examples:
  $ plat pins list                    servers with changed tools
  $ plat pins show notes              each tool, with the definition it is compared with
  $ plat pins show notes read         changes of its definition
  $ plat pins accept notes read       accept the current definition
  $ plat pins reject notes read       refuse the current definition`,
    )
  pins
    .command('list')
    .summary('list servers with their changed tools')
    .addOption(dir())
    .addOption(wideFormat())
    .action(async (options) => exitWith((await load()).pinsList(options, terminal)))
  pins
    .command('show')
    .argument('<server>', 'name, or namespace/name')
    .argument('[tool]', 'shows the changes of the definition of one tool')
    .summary('show the tools of a server: pinned, drifted or unpinned')
    .addOption(dir())
    .addOption(format())
    .action(async (server: string, tool: string | undefined, options) =>
      exitWith((await load()).pinsShow({ ...options, server, tool }, terminal)),
    )
  pins
    .command('accept')
    .argument('<server>', 'name, or namespace/name')
    .argument('[tools...]', 'tools to accept (default: all that changed or have no pin)')
    .summary('accept the current definitions of a server')
    .description(
      'Accepts the current definitions of a server. Survives restarts and is recorded in the ledger. Pins in resources ' +
        'are not overridden: the command prints the line to write there.\n' +
        'Exit codes: 0 accepted, 1 not all of them.',
    )
    .addOption(dir())
    .addOption(format())
    .action(async (server: string, tools: string[], options) =>
      exitWith((await load()).pinsAccept({ ...options, server, tools }, terminal)),
    )
  addReject(pins)
}

function addReject(pins: Command): void {
  const load = () => import('./pins.ts')
  pins
    .command('reject')
    .argument('<server>', 'name, or namespace/name')
    .argument('<tools...>', 'tools to reject')
    .summary('refuse the current definitions of tools')
    .description(
      'Hides and refuses the current definitions of tools, in every mode, until they are accepted or the server offers ' +
        'others. Survives restarts and is recorded in the ledger.\n' +
        'Exit codes: 0 rejected, 1 not all of them.',
    )
    .addOption(dir())
    .addOption(format())
    .action(async (server: string, tools: string[], options) =>
      exitWith((await load()).pinsReject({ ...options, server, tools }, terminal)),
    )
}
