import { buildInfo } from '@plat/core'
import { Command, CommanderError, Option } from 'commander'
import { doubleDashes, partAtDashes } from './arguments.ts'
import { CommandError, type Format, formats, terminal } from './output.ts'

const format = () =>
  new Option('-o, --output <format>', 'how to print: for people (table) or for programs')
    .choices([...formats])
    .default('table')

const dir = () => new Option('--dir <dir>', 'the directory of a running plat (default: the nearest one upwards)')

/** The whole command line in one table; what a command needs is loaded when it runs. */
export function program(child: readonly string[] = []): Command {
  const plat = new Command('plat')
    .description('plat governs AI agents: it knows who calls, decides whether they may, and proves what happened.')
    .version(buildInfo('cli').version, '-v, --version', 'print the version')
    .exitOverride()
    .configureHelp({
      optionTerm: (option) => option.flags.replace(/--(?=\w)/, '-'),
      commandDescription: (command) => command.description() || command.summary(),
    })
    .configureOutput({
      outputError: (text, write) => write(text.replace(/^error: /, 'plat: ').replace(/--(?=\w)/g, '-')),
    })
    .showHelpAfterError('Add -help to see how a command is written.')
    .addHelpText(
      'after',
      `
Start here:
  $ plat up examples/quickstart                   govern the agents of a directory
  $ plat run assistant -- npx my-agent            run any program as that agent
  $ plat approvals watch                          decide what agents may not do alone
  $ plat revoke agent:default/assistant           stop an agent at once
  $ plat pins list                                see which tools changed their words
  $ plat audit tail -f                            watch what agents do`,
    )
  addUp(plat)
  addRun(plat, child)
  addToken(plat)
  addAudit(plat)
  addApprovals(plat)
  addRevoke(plat)
  addPins(plat)
  addCosts(plat)
  addConfig(plat)
  addPosture(plat)
  addKeys(plat)
  return plat
}

function addUp(plat: Command): void {
  plat
    .command('up')
    .argument('[dir]', 'holds resources/ and, if you like, gateway.json', '.')
    .summary('start the identity broker and the gateway on the files of a directory')
    .description(
      'Starts the identity broker, the gateway and the loop that renders resources, in one process.\n' +
        'Resources are read from <dir>/resources/<plural>/<namespace>/<name>.yaml and again whenever they change; ' +
        'state, keys and the ledger are kept in <dir>/.plat/. Stop with Ctrl-C; a later start goes on where it stopped.',
    )
    .option('--listen <address>', 'where the gateway listens', '127.0.0.1:8080')
    .option('--identity-listen <address>', 'where the identity broker listens', '127.0.0.1:8081')
    .addOption(
      new Option('--log <where>', '.plat/logs/<service>.jsonl, or JSON lines on stdout')
        .choices(['file', 'json'])
        .default('file'),
    )
    .action(async (folder: string, options) => {
      const { up } = await import('./up.ts')
      await exitWith(up({ dir: folder, ...options }, terminal))
    })
}

function addRun(plat: Command, child: readonly string[]): void {
  plat
    .command('run')
    .argument('<agent>', 'name, or namespace/name')
    .summary('run any local program as a governed agent')
    .description(
      'Runs a program whose calls go through the gateway as this agent. The program gets addresses, never a token:\n' +
        '  PLAT_MCP_CONFIG    an mcp.json that names the MCP servers of the agent\n' +
        '  OPENAI_BASE_URL    the model of the agent; OPENAI_API_KEY goes with it\n' +
        '  PLAT_GATEWAY_URL   the gateway\n' +
        'All of them lead to a forwarder on loopback, which adds the session token.',
    )
    .usage('<agent> [options] -- <command> [arguments]')
    .addOption(dir())
    .addHelpText('after', '\nExample:\n  $ plat run assistant -- node my-agent.js')
    .action(async (agent: string, options) => {
      const { run } = await import('./run.ts')
      await exitWith(run({ ...options, agent, command: child }, terminal))
    })
}

function addToken(plat: Command): void {
  plat
    .command('token')
    .description('session tokens')
    .command('mint')
    .argument('<agent>', 'name, or namespace/name')
    .summary('mint a session token, for trying things by hand')
    .description('Asks the broker of the running plat for a session token with the scopes of the agent.')
    .addOption(dir())
    .option('--session <id>', 'session id', 'by-hand')
    .option('--user <name>', 'the user it acts for (default: you)')
    .addOption(new Option('--scope <scope...>', 'such as tools:notes').default([], 'those of the agent'))
    .option('--ttl <duration>', 'lifetime, such as 15m')
    .addOption(format())
    .action(async (agent: string, { output, ...options }: { output: Format; session: string; scope: string[] }) => {
      const { tokenMint } = await import('./token-mint.ts')
      await exitWith(tokenMint({ ...options, agent, format: output }, terminal))
    })
}

function addAudit(plat: Command): void {
  const audit = plat.command('audit').description('the tamper-evident ledger')
  audit
    .command('verify')
    .argument('[path]', 'the ledger file (default: that of the running plat)')
    .summary('prove that no record was changed, removed or added')
    .description(
      'Reads the whole ledger and checks every hash. Exit codes:\n' +
        '  0  valid\n' +
        '  2  a file cannot be read, or a flag is wrong\n' +
        '  3  broken: a record was changed, removed, added or moved\n' +
        '  4  torn, or a tail that no signed checkpoint covers\n' +
        '  5  forked: two histories\n' +
        '  6  truncated below a checkpoint',
    )
    .addOption(dir())
    .option('--key <file>', 'public key (PEM or JWK) of the checkpoints')
    .option('--checkpoint <file>', 'a checkpoint kept elsewhere, which the ledger must still contain')
    .option('--strict', 'also parse every record, check its canonical form and build the tree')
    .addOption(format())
    .action(async (path: string | undefined, options) => {
      const [{ auditVerify }, { ledgerPath }] = await Promise.all([
        import('./audit-verify.ts'),
        import('./ledger-path.ts'),
      ])
      await exitWith(
        auditVerify({ ...options, path: await ledgerPath(path, options.dir), output: options.output }, terminal),
      )
    })
  audit
    .command('tail')
    .argument('[path]', 'the ledger file (default: that of the running plat)')
    .summary('show the latest records, one line each')
    .addOption(dir())
    .option('-f, --follow', 'go on as records come in')
    .option('-n, --lines <count>', 'how many records to begin with', '20')
    .addOption(format())
    .action(async (path: string | undefined, options) => {
      const [{ auditTail }, { ledgerPath }] = await Promise.all([import('./audit-tail.ts'), import('./ledger-path.ts')])
      await exitWith(auditTail({ ...options, path: await ledgerPath(path, options.dir) }, terminal))
    })
  audit
    .command('repair')
    .argument('<path>', 'the ledger file; the gateway must not be running')
    .summary('set damage aside, with a record of it, so that the gateway starts again')
    .action(async (path: string) => {
      const { auditRepair } = await import('./audit-repair.ts')
      await exitWith(auditRepair({ path }, terminal))
    })
}

function addRevoke(plat: Command): void {
  const load = () => import('./revoke.ts')
  plat
    .command('revoke')
    .argument('<target>', 'all, or <scope>:<name>: session:<ns>/<agent>/<id>, agent:<ns>/<name>, namespace, user, jti')
    .summary('the kill switch: nobody who is named may call any more, and live calls end')
    .description('Nobody who is named may call any more: at once, over restarts, until -for is over or it is lifted.')
    .addOption(dir())
    .addOption(
      new Option('--mode <mode>', 'a suspension is meant to be lifted, and agents are told so')
        .choices(['revoke', 'suspend'])
        .default('revoke'),
    )
    .option('--reason <text>', 'kept in the ledger and shown in the list; agents never hear it')
    .option('--for <duration>', 'until it ends by itself, such as 1h')
    .addOption(format())
    .action(async (target: string, options) => exitWith((await load()).revoke({ ...options, target }, terminal)))
  const revocations = plat.command('revocations').description('who may not call')
  revocations
    .command('list')
    .summary('what is in force')
    .addOption(dir())
    .addOption(format())
    .action(async (options) => exitWith((await load()).revocationsList(options, terminal)))
  revocations
    .command('lift')
    .argument('<id>', 'as revocations list shows it')
    .summary('let them call again')
    .addOption(dir())
    .action(async (id: string, options) => exitWith((await load()).revocationsLift({ ...options, id }, terminal)))
}

function addApprovals(plat: Command): void {
  const approvals = plat.command('approvals').description('calls that wait for a person')
  const load = () => import('./approvals.ts')
  approvals
    .command('list')
    .summary('what waits for a decision')
    .addOption(dir())
    .option('--all', 'also what is decided, used or expired, of the last day')
    .addOption(format())
    .action(async (options) => exitWith((await load()).approvalsList(options, terminal)))
  approvals
    .command('show')
    .argument('<id>', 'as approvals list shows it')
    .summary('everything that is known of one')
    .addOption(dir())
    .addOption(format())
    .action(async (id: string, options) => exitWith((await load()).approvalsShow({ ...options, id }, terminal)))
  for (const verdict of ['approve', 'deny'] as const) {
    approvals
      .command(verdict)
      .argument('<id>', 'as approvals list shows it')
      .summary(verdict === 'approve' ? 'let the call pass, once' : 'refuse the call')
      .addOption(dir())
      .option('--reason <text>', 'kept in the ledger; of a denial the agent hears it')
      .addOption(format())
      .action(async (id: string, options) =>
        exitWith((await load()).approvalsDecide({ ...options, id, verdict }, terminal)),
      )
  }
  approvals
    .command('watch')
    .summary('keep this open in a second terminal: who wants what, and one key decides')
    .description(
      'Shows each call that waits. Keys: a approve, d deny, s skip, q quit. Without a terminal: one line each.',
    )
    .addOption(dir())
    .addOption(format())
    .action(async (options) => {
      const { approvalsWatch } = await import('./approvals-watch.ts')
      await exitWith(approvalsWatch(options, terminal))
    })
}

function addPins(plat: Command): void {
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

function addCosts(plat: Command): void {
  plat
    .command('costs')
    .summary('show what agents cost, by session and route')
    .description(
      'Adds up what agents cost, by session and route. Reads the ledger; no gateway has to run. Money of calls under ' +
        'way, or whose process died, stands under HELD: the next start of the gateway counts it as spent.',
    )
    .option('--ledger <file>', 'the ledger file (default: that of the running plat)')
    .addOption(dir())
    .addOption(format())
    .action(async ({ ledger, ...options }) => {
      const [{ costs }, { ledgerPath }] = await Promise.all([import('./costs.ts'), import('./ledger-path.ts')])
      await exitWith(costs({ ...options, path: await ledgerPath(ledger, options.dir) }, terminal))
    })
}

function addConfig(plat: Command): void {
  plat
    .command('config')
    .description('the gateway configuration')
    .command('validate')
    .argument('<file>', 'a gateway.json')
    .summary('check a gateway.json before it is deployed')
    .description(
      'Prints every problem of a complete gateway.json with its full key path. With plat up that is .plat/gateway.json; ' +
        'the gateway.json beside resources/ only adds to it. Exit codes: 0 valid, 3 on errors.',
    )
    .option('--strict', 'unknown keys and missing files are errors, not warnings')
    .action(async (path: string, options: { strict?: true }) => {
      const { validateConfigFile } = await import('./config-validate.ts')
      await exitWith(validateConfigFile({ path, strict: options.strict === true, write: terminal.out }))
    })
}

function addPosture(plat: Command): void {
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

function addKeys(plat: Command): void {
  plat
    .command('keys')
    .description('signing keys')
    .command('generate')
    .argument('[dir]', 'where key.pem and pub.pem go', '.')
    .summary('make an Ed25519 key pair')
    .addOption(format())
    .action(async (folder: string, options: { output: Format }) => {
      const { keysGenerate } = await import('./keys-generate.ts')
      await exitWith(keysGenerate({ dir: folder, format: options.output }, terminal))
    })
}

/** Commander has no exit codes of its own for actions: the code travels in this error. */
class Exit extends Error {
  readonly code: number

  constructor(code: number) {
    super()
    this.code = code
  }
}

async function exitWith(result: Promise<number>): Promise<void> {
  const code = await result
  if (code !== 0) throw new Exit(code)
}

/** Runs one command line; answers its exit code. Mistakes are one line on stderr, usage mistakes exit 2. */
export async function main(argv: readonly string[]): Promise<number> {
  try {
    const { own, child } = partAtDashes(argv)
    await program(child).parseAsync(doubleDashes(own), { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof Exit) return error.code
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (!(error instanceof CommandError)) throw error
    terminal.err(`plat: ${error.message}`)
    return error.exitCode
  }
}
