/** The clients that are tested, with their versions and how they are started. docs/agents/README.md has the same table. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { tempFolder } from '@plat/testkit/local'
import { interpreters } from '@plat/testkit/processes/interpreters'
import { npmPackages } from '@plat/testkit/processes/npm'
import { pythonWith } from '@plat/testkit/processes/python'
import type { Way } from './page.ts'
import type { Program } from './world.ts'

const execute = promisify(execFile)
const here = (name: string) => path.join(import.meta.dirname, name)

/** Commands and packages of a program, or the reason why they are missing. */
export type Runtime = Pick<Program, 'commands' | 'modules'> | { readonly missing: string }

export interface Client {
  readonly name: string
  readonly version: string
  readonly ways: readonly Way[]
  /** Returns what it runs on. `isLong`: also what takes minutes to install. */
  runtime(isLong: boolean): Promise<Runtime>
}

/** A client whose program is on a page in docs/agents; of several programs, the one with the number `variant`. */
export interface PageClient extends Client {
  readonly page: string
  readonly variant?: number
  /** The Agent resource, for models with another API. */
  readonly agent?: string
}

/** A client that uses an SDK of MCP directly, with the command that runs it on a configuration and the steps. */
export interface SdkClient extends Client {
  readonly command: string
}

const BOTH: readonly Way[] = ['Under plat run', 'With a token']
const ALL: readonly Way[] = [...BOTH, 'At one address']

/** Returns the version of a package in a file of the folder, such as `mcp==2.3.0`. */
function pinned(file: string, name: string): string {
  const [, version] =
    new RegExp(`^${name}(?:\\[\\w+\\])?(?:==| v| .*version = "=)([\\w.]+)`, 'm').exec(
      readFileSync(here(file), 'utf8'),
    ) ?? []
  if (version === undefined) throw new Error(`${file} has no version of ${name}`)
  return version
}

async function python(requirements: string, interpreter?: string, timeoutMs?: number): Promise<Runtime> {
  const found = await pythonWith(here(`requirements/${requirements}.txt`), interpreter, timeoutMs)
  return 'missing' in found ? found : { commands: { python: found.path } }
}

/** CrewAI cannot call servers on an older Python. */
const CREWAI_MINOR = 12
/** Time to install its packages, which are 1 GiB, in milliseconds. */
const CREWAI_INSTALL_MS = 1_800_000

async function pythonOfCrewAi(): Promise<Runtime> {
  const found = (await interpreters()).find(({ minor }) => minor >= CREWAI_MINOR)
  if (found === undefined) return { missing: `no Python 3.${CREWAI_MINOR} or later` }
  return await python('crewai', found.path, CREWAI_INSTALL_MS)
}

async function npm(packages: readonly string[], commands: Readonly<Record<string, string>> = {}): Promise<Runtime> {
  const found = await npmPackages(packages)
  if ('missing' in found) return found
  const programs = Object.entries(commands).map(([name, file]) => [name, path.join(found.folder, file)])
  return { modules: found.folder, commands: Object.fromEntries(programs) }
}

/** Versions of packages of npm. */
const NPM = {
  ai: '7.0.173',
  '@ai-sdk/openai': '4.0.118',
  '@ai-sdk/mcp': '2.0.99',
  '@anthropic-ai/sdk': '1.12.0',
  '@modelcontextprotocol/client': '2.4.0',
  '@modelcontextprotocol/sdk': '1.32.2',
  '@anthropic-ai/claude-code': '2.1.330',
  '@google/gemini-cli': '0.61.0',
  '@openai/codex': '0.169.0',
} as const

type NpmName = keyof typeof NPM

const spec = (name: NpmName) => `${name}@${NPM[name]}`
const SDKS = (['ai', '@ai-sdk/openai', '@ai-sdk/mcp', '@anthropic-ai/sdk'] as const).map(spec)
const CLIENTS = (['@modelcontextprotocol/client', '@modelcontextprotocol/sdk'] as const).map(spec)
const typescript = () => npm([...SDKS, ...CLIENTS])

/** A program of npm with a command. */
function program(name: NpmName, command: string, file: string): Pick<Client, 'version' | 'runtime'> {
  return { version: NPM[name], runtime: () => npm([spec(name)], { [command]: file }) }
}

export const PAGES: readonly PageClient[] = [
  {
    name: 'openai-agents',
    version: pinned('requirements/frameworks.txt', 'openai-agents'),
    page: 'openai-agents.md',
    ways: BOTH,
    runtime: () => python('frameworks'),
  },
  {
    name: 'LangGraph',
    version: pinned('requirements/frameworks.txt', 'langgraph'),
    page: 'langgraph.md',
    ways: BOTH,
    runtime: () => python('frameworks'),
  },
  { name: 'AI SDK', version: NPM.ai, page: 'ai-sdk.md', ways: BOTH, runtime: typescript },
  {
    name: 'Anthropic SDK, Python',
    version: pinned('requirements/anthropic.txt', 'anthropic'),
    page: 'anthropic-sdk.md',
    ways: BOTH,
    runtime: () => python('anthropic'),
  },
  {
    name: 'Anthropic SDK, TypeScript',
    version: NPM['@anthropic-ai/sdk'],
    page: 'anthropic-sdk.md',
    variant: 1,
    ways: BOTH,
    runtime: typescript,
  },
  {
    name: 'Claude Code',
    page: 'claude-code.md',
    ways: BOTH,
    ...program('@anthropic-ai/claude-code', 'claude', '@anthropic-ai/claude-code-linux-x64/claude'),
  },
  { name: 'Gemini CLI', page: 'gemini-cli.md', ways: BOTH, ...program('@google/gemini-cli', 'gemini', '.bin/gemini') },
  {
    name: 'Codex CLI',
    page: 'codex-cli.md',
    ways: BOTH,
    agent: 'coder',
    ...program('@openai/codex', 'codex', '.bin/codex'),
  },
  {
    name: 'Google ADK',
    version: pinned('requirements/adk.txt', 'google-adk'),
    page: 'google-adk.md',
    ways: BOTH,
    runtime: () => python('adk'),
  },
  {
    name: 'CrewAI',
    version: pinned('requirements/crewai.txt', 'crewai'),
    page: 'crewai.md',
    ways: BOTH,
    runtime: async (isLong) =>
      isLong ? await pythonOfCrewAi() : { missing: 'its packages are 1 GiB: npm run long -- -only agents' },
  },
]

/** The clients of compiled languages. */
const GO = path.join(tempFolder(), 'agents')
const TARGET = here('../../../node_modules/.cache/plat-rust')
const RUST = path.join(TARGET, 'debug/agents')

export const SDK_CLIENTS: readonly SdkClient[] = [
  {
    name: 'MCP SDK, Python 1',
    version: pinned('requirements/frameworks.txt', 'mcp'),
    command: 'python python_v1.py',
    ways: ALL,
    runtime: () => python('frameworks'),
  },
  {
    name: 'MCP SDK, Python 2',
    version: pinned('requirements/anthropic.txt', 'mcp'),
    command: 'python python_v2.py',
    ways: ALL,
    runtime: () => python('anthropic'),
  },
  {
    name: 'MCP SDK, TypeScript 1',
    version: NPM['@modelcontextprotocol/sdk'],
    command: 'node typescript-v1.mjs',
    ways: ALL,
    runtime: typescript,
  },
  {
    name: 'MCP SDK, TypeScript 2',
    version: NPM['@modelcontextprotocol/client'],
    command: 'node typescript-v2.mjs',
    ways: ALL,
    runtime: typescript,
  },
  {
    name: 'MCP SDK, Go',
    version: pinned('clients/go/go.mod', 'require github.com/modelcontextprotocol/go-sdk'),
    command: GO,
    ways: ALL,
    runtime: () => compiled('go', ['build', '-o', GO, '.']),
  },
  {
    name: 'MCP SDK, Rust',
    version: pinned('clients/rust/Cargo.toml', 'rmcp'),
    command: RUST,
    ways: ALL,
    runtime: async (isLong) =>
      isLong
        ? await compiled('cargo', ['build', '--locked', '--target-dir', TARGET])
        : { missing: 'it takes minutes to compile: npm run long -- -only agents' },
  },
]

/** Builds the client of a compiled language with its tool. */
async function compiled(tool: 'go' | 'cargo', args: readonly string[]): Promise<Runtime> {
  const folder = here(`clients/${tool === 'go' ? 'go' : 'rust'}`)
  return await execute(tool, args, { cwd: folder }).then(
    () => ({ commands: {} }),
    (error: unknown) => ({ missing: `${tool}: ${String(error).split('\n')[0]}` }),
  )
}
