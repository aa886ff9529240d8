import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { tempFolder } from '@plat/testkit/local'
import { npmPackages } from '@plat/testkit/processes/npm'
import { pythonWith } from '@plat/testkit/processes/python'
import { type Mode, readPage } from './page.ts'
import { isWaiting, SERVERS, type Step } from './scenario.ts'
import { type Program, runScript, startWorld } from './world.ts'

const execute = promisify(execFile)
const here = (name: string) => path.join(import.meta.dirname, name)
const MODES: readonly Mode[] = ['Under plat run', 'With a token']
/** Clients that take minutes to compile run in `npm run long`. */
const IS_LONG = process.env.PLAT_TEST_ALL_AGENTS === '1'
const LATER: Runtime = { missing: 'it takes minutes to compile: npm run long -- -only agents' }
/** Most of a run is waiting for approvals, in `npm run long` for a minute. */
const CONCURRENCY = IS_LONG ? 10 : 4
/** Time after which calls are approved, in milliseconds; by default longer than any client waits: openai-agents gives up after five seconds. */
const APPROVAL_MS = IS_LONG ? 60_000 : 6000

/** The clients of compiled languages. */
const GO = path.join(tempFolder(), 'agents')
const TARGET = here('../../../node_modules/.cache/plat-rust')
const RUST = path.join(TARGET, 'debug/agents')

/** Commands and packages of a program, or the reason why they are missing. */
type Runtime = Pick<Program, 'commands' | 'modules'> | { readonly missing: string }

async function python(requirements: string, interpreter?: string): Promise<Runtime> {
  const found = await pythonWith(here(`requirements/${requirements}.txt`), interpreter)
  return 'missing' in found ? found : { commands: { python: found.path } }
}

async function npm(packages: readonly string[], commands: Readonly<Record<string, string>> = {}): Promise<Runtime> {
  const found = await npmPackages(packages)
  if ('missing' in found) return found
  const programs = Object.entries(commands).map(([name, file]) => [name, path.join(found.folder, file)])
  return { modules: found.folder, commands: Object.fromEntries(programs) }
}

const SDKS = ['ai@7.0.173', '@ai-sdk/openai@4.0.118', '@ai-sdk/mcp@2.0.99', '@anthropic-ai/sdk@1.12.0']
const CLIENTS = ['@modelcontextprotocol/client@2.4.0', '@modelcontextprotocol/sdk@1.32.2']

/** The pages, each with what its program runs on; of a page with several programs each one. */
const PAGES: readonly (readonly [page: string, runtime: () => Promise<Runtime>, variant?: number])[] = [
  ['openai-agents.md', () => python('frameworks')],
  ['langgraph.md', () => python('frameworks')],
  ['ai-sdk.md', () => npm([...SDKS, ...CLIENTS])],
  ['anthropic-sdk.md', () => python('anthropic')],
  ['anthropic-sdk.md', () => npm([...SDKS, ...CLIENTS]), 1],
  [
    'claude-code.md',
    () => npm(['@anthropic-ai/claude-code@2.1.330'], { claude: '@anthropic-ai/claude-code-linux-x64/claude' }),
  ],
  ['gemini-cli.md', () => npm(['@google/gemini-cli@0.61.0'], { gemini: '.bin/gemini' })],
  ['codex-cli.md', () => npm(['@openai/codex@0.169.0'], { codex: '.bin/codex' })],
  ['google-adk.md', () => python('adk')],
  [
    'crewai.md',
    async () =>
      IS_LONG
        ? await python('crewai', 'python3.12')
        : { missing: 'its packages are 1 GiB: npm run long -- -only agents' },
  ],
]

/** Reasons why a page is not run under `plat run`. */
const WITH_TOKEN_ONLY: Readonly<Record<string, string>> = {
  'crewai.md': 'it cuts names of tools, which begin with the address, so the scripted model does not find them',
}

/** Agents whose model has another API than that of the others. */
const AGENTS: Readonly<Record<string, string>> = { 'codex-cli.md': 'coder' }

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const world = await startWorld(stack, APPROVAL_MS)

/** The text at the end of each step: those before it say that the call waits. */
function ends(texts: readonly string[]): readonly string[] {
  return texts.filter((text) => !isWaiting(text))
}

function assertRead(texts: readonly string[], steps: readonly Step[]): void {
  assert.equal(texts.length, steps.length, JSON.stringify(texts, null, 2))
  for (const [at, { tool, reads }] of steps.entries()) assert.match(texts[at] ?? '', reads, tool)
}

/** Clients that use an SDK of MCP directly, with the command that runs each. */
const SDK_CLIENTS: readonly (readonly [name: string, command: string, runtime: () => Promise<Runtime>])[] = [
  ['Python, version 1', 'python python_v1.py', () => python('frameworks')],
  ['Python, version 2', 'python python_v2.py', () => python('anthropic')],
  ['TypeScript, version 1', 'node typescript-v1.mjs', () => npm([...SDKS, ...CLIENTS])],
  ['TypeScript, version 2', 'node typescript-v2.mjs', () => npm([...SDKS, ...CLIENTS])],
  ['Go', GO, () => compiled('go', ['build', '-o', GO, '.'])],
  ['Rust', RUST, async () => (IS_LONG ? await compiled('cargo', ['build', '--target-dir', TARGET]) : LATER)],
]

/** Builds the client of a compiled language with its tool. */
async function compiled(tool: 'go' | 'cargo', args: readonly string[]): Promise<Runtime> {
  const folder = here(`clients/${tool === 'go' ? 'go' : 'rust'}`)
  return await execute(tool, args, { cwd: folder }).then(
    () => ({ commands: {} }),
    (error: unknown) => ({ missing: `${tool}: ${String(error).split('\n')[0]}` }),
  )
}

/** Script of a client: with the servers of `plat run`, or with addresses and a token. */
const CONFIGURED: Readonly<Record<Mode, (command: string) => string>> = {
  'Under plat run': (command) => `npx --no plat run assistant -- sh -c '${command} "$PLAT_MCP_CONFIG" < steps.json'`,
  'With a token': (command) =>
    `${readPage('README.md', SERVERS).script('With a token', '')}\n${command} mcp.json < steps.json`,
}

describe('SDKs of MCP', { concurrency: CONCURRENCY, skip: 'missing' in world ? world.missing : false }, async () => {
  for (const [name, command, runtime] of SDK_CLIENTS) {
    const runsOn = await runtime()
    for (const mode of MODES)
      test(`${name}: ${mode.toLowerCase()} each call returns its result or its refusal`, {
        skip: 'missing' in runsOn ? runsOn.missing : false,
      }, async () => {
        assert.ok(!('missing' in world) && !('missing' in runsOn))
        const [, file = ''] = command.split(' ')
        const own = file === '' ? {} : { [file]: readFileSync(here(`clients/${file}`), 'utf8') }
        const files = { ...own, 'steps.json': JSON.stringify(world.steps) }
        const session = name.toLowerCase().replace(/\W+/g, '-')
        const script = CONFIGURED[mode](command).replaceAll('mint assistant', `mint assistant -session ${session}`)
        const printed = await runScript(world, { ...runsOn, files, script })
        assertRead(JSON.parse(printed), world.steps)
      })
  }
})

describe('pages of agents', {
  concurrency: CONCURRENCY,
  skip: 'missing' in world ? world.missing : false,
}, async () => {
  let runs = 0
  for (const [name, runtime, variant] of PAGES) {
    const runsOn = await runtime()
    for (const mode of MODES) {
      const title = `${name}${variant === undefined ? '' : `, program ${variant + 1}`}: ${mode.toLowerCase()} the model reads every refusal`
      const skipped = mode === 'Under plat run' ? WITH_TOKEN_ONLY[name] : undefined
      test(title, { skip: 'missing' in runsOn ? runsOn.missing : (skipped ?? false) }, async () => {
        assert.ok(!('missing' in world) && !('missing' in runsOn))
        const id = `run-${++runs}`
        const page = readPage(name, SERVERS, variant)
        const agent = AGENTS[name] ?? 'assistant'
        const script = page
          .script(mode, `Task ${id}`)
          .replaceAll('assistant', agent)
          .replaceAll(`mint ${agent}`, `mint ${agent} -session ${id}`)
        const printed = await runScript(world, { ...runsOn, files: page.files, script })
        const texts = world.model.read(id)
        assert.match(printed, new RegExp(`finished ${id}`), JSON.stringify(texts, null, 2))
        assertRead(ends(texts), world.steps)
      })
    }
  }
})
