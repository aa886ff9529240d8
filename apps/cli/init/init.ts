import { createInterface } from 'node:readline/promises'
import { closest } from '@plat/core'
import { addAgent } from '../import/agent.ts'
import { checkAgentName } from '../import/import.ts'
import { withoutComments } from '../import/jsonc.ts'
import { addServer, type FoundServer } from '../import/mcp-servers.ts'
import { Notes } from '../import/notes.ts'
import { writeSchemas } from '../schema/schema.ts'
import { Draft } from '../shared/draft.ts'
import { homeOf } from '../shared/home.ts'
import { nextSteps } from '../shared/next-steps.ts'
import { CommandError, type Output, plain } from '../shared/output.ts'
import { modelOf, NO_PROVIDER, PROVIDER_CHOICES, usualProvider } from './providers.ts'
import { findSources, type Places, type Source } from './sources.ts'

export interface InitOptions {
  readonly dir: string
  readonly agent?: string | undefined
  /** Names of servers, `all` or `none`. */
  readonly servers?: string | undefined
  readonly provider?: string | undefined
  /** Takes the usual answer to every question that no option answers. */
  readonly yes?: boolean | undefined
}

/** Reads the answer to a question; `usual` is that to an empty line. Rejects without a terminal. */
export type Prompt = (question: string, usual: string) => Promise<string>

/** A server, and the file that has it. */
interface Offered {
  readonly server: FoundServer
  readonly source: Source
}

const ALL = 'all'
const NONE = 'none'

/**
 * `plat init`: writes the resources of one agent, with the MCP servers of this machine's clients and a provider of models. Changes nothing
 * that exists, and ends with the next command.
 */
export async function init(
  options: InitOptions,
  output: Output,
  { prompt, places }: { readonly prompt: Prompt; readonly places: Places },
): Promise<number> {
  const { env } = places
  const { sources, problems } = await findSources(places)
  for (const problem of problems) output.err(plain(problem))
  const offered = offeredBy(sources)
  const answer = answers(options, output, prompt)

  const agent = await answer(options.agent, 'Name of the agent', 'assistant', checkAgentName)
  if (offered.length > 0 && options.servers === undefined && options.yes !== true) listServers(offered, output)
  const usual = offered.length > 0 ? ALL : NONE
  const named = offered.length === 0 && options.servers === undefined ? NONE : undefined
  const question = 'Servers to govern (all, none, or names with commas)'
  const given = await answer(options.servers ?? named, question, usual, (text) => chosen(text, offered))
  const servers = chosen(given, offered)
  const choices = PROVIDER_CHOICES.join(', ')
  const provider = await answer(
    options.provider,
    `Provider of its model (${choices})`,
    usualProvider(env),
    checkProvider,
  )
  if (offered.length === 0 && options.servers === undefined && provider === NO_PROVIDER) throw nothingToGovern()

  const draft = await Draft.of(homeOf(options.dir))
  const { names, notes } = addServers(servers, draft, env)
  const model = provider === NO_PROVIDER || draft.has('Agent', agent) ? undefined : modelOf(provider, draft, env)
  const steps = addAgent(draft, { agent, servers: names, modelRoutes: [], ...(model !== undefined && { model }) })
  const missing = await draft.write(output)
  await writeSchemas(draft.home.schemas)
  for (const [source, one] of notes) one.print(source.file, withoutComments(source.text), output)
  for (const step of [...missing, ...steps]) output.out(`next: ${plain(step)}`)
  for (const step of nextSteps({ dir: options.dir, agent, env })) output.out(step)
  return 0
}

/** Returns a function for one question: it returns the option, the usual answer, or prompts until `check` accepts the answer. */
function answers({ yes }: InitOptions, output: Output, prompt: Prompt) {
  return async (given: string | undefined, question: string, usual: string, check: (answer: string) => unknown) => {
    const known = given ?? (yes === true ? usual : undefined)
    for (;;) {
      const text = known ?? (await prompt(question, usual))
      try {
        check(text)
        return text
      } catch (error) {
        if (known !== undefined || !(error instanceof CommandError)) throw error
        output.err(error.message)
      }
    }
  }
}

function nothingToGovern(): CommandError {
  const places = '.mcp.json, .vscode/mcp.json, .cursor/mcp.json and the settings of Claude Desktop, VS Code and Cursor'
  return new CommandError(
    `nothing to govern: no MCP server in ${places}, and no model; write a server into .mcp.json, ` +
      'choose a -provider, or write an agent without either with -servers none',
  )
}

/** Each server of a name once: the first file has it. */
function offeredBy(sources: readonly Source[]): readonly Offered[] {
  const names = new Set<string>()
  return sources.flatMap((source) =>
    source.servers.flatMap((server) => {
      if (names.has(server.name)) return []
      names.add(server.name)
      return [{ server, source }]
    }),
  )
}

function listServers(offered: readonly Offered[], output: Output): void {
  output.out('MCP servers of this machine:')
  for (const { server, source } of offered) {
    const { program, file } = source
    output.out(plain(`  ${server.name}  (${file.endsWith(program) ? file : `${program}, ${file}`})`))
  }
}

function chosen(answer: string, offered: readonly Offered[]): readonly Offered[] {
  if (answer === ALL) return offered
  if (answer === NONE) return []
  return answer.split(',').map((part) => {
    const name = part.trim()
    const found = offered.find(({ server }) => server.name === name)
    if (found !== undefined) return found
    const known = offered.map(({ server }) => server.name)
    const meant = closest(name, known)
    const hint = meant !== null ? `did you mean ${meant}?` : `there is ${known.join(', ') || 'none'}`
    throw new CommandError(`no server ${JSON.stringify(name)} was found; ${hint}`, 2)
  })
}

function checkProvider(provider: string): void {
  if (PROVIDER_CHOICES.includes(provider)) return
  const meant = closest(provider, PROVIDER_CHOICES)
  const hint = meant !== null ? `did you mean ${meant}?` : `choose one of ${PROVIDER_CHOICES.join(', ')}`
  throw new CommandError(`${JSON.stringify(provider)} is not a provider that plat init writes; ${hint}`, 2)
}

/** Adds the servers, and returns the names of those that agents can use, with what was not converted by source. */
function addServers(servers: readonly Offered[], draft: Draft, env: NodeJS.ProcessEnv) {
  const notes = new Map<Source, Notes>()
  const names = servers.flatMap(({ server, source }) => {
    const own = notes.get(source) ?? new Notes()
    notes.set(source, own)
    return addServer(server, { draft, env, notes: own }) ? [server.name] : []
  })
  return { names, notes }
}

/** Reads answers from the terminal. Without one every question needs an option. */
export async function promptOnTerminal<T>(run: (prompt: Prompt) => Promise<T>): Promise<T> {
  if (process.stdin.isTTY !== true || process.stdout.isTTY !== true) {
    return run(async (question) => {
      const text = 'answer with -agent, -servers and -provider, or take the usual answers with -yes'
      throw new CommandError(`${question}: no terminal to answer on; ${text}`, 2)
    })
  }
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  const closed = new Promise<never>((_resolve, reject) => {
    lines.once('close', () => reject(new CommandError('cancelled: nothing was written')))
  })
  closed.catch(() => {})
  try {
    return await run(async (question, usual) => {
      const answer = await Promise.race([lines.question(`${question} [${usual}]: `), closed])
      return answer.trim() === '' ? usual : answer.trim()
    })
  } finally {
    lines.close()
  }
}
