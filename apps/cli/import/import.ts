import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { reasonOf } from '@plat/core'
import { Draft } from '../shared/draft.ts'
import { EXIT } from '../shared/exit-codes.ts'
import { homeOf } from '../shared/home.ts'
import { nextSteps } from '../shared/next-steps.ts'
import { CommandError, type Output, plain } from '../shared/output.ts'
import { addAgent } from './agent.ts'
import { serversOfCompose } from './compose.ts'
import type { ImportFormat } from './formats.ts'
import { withoutComments } from './jsonc.ts'
import { convertLiteLLM } from './litellm/litellm.ts'
import { addServer, type ConvertOptions, serversIn } from './mcp-servers.ts'
import { Notes } from './notes.ts'

export interface ImportOptions {
  readonly format: ImportFormat
  readonly file: string
  /** Where the resources are written. */
  readonly dir: string
  /** Name of the agent that may use what is imported. */
  readonly agent: string
  readonly env?: NodeJS.ProcessEnv
}

/** Largest file that is read, in bytes. */
const FILE_MAX_BYTES = 1024 * 1024

/**
 * `plat import`: converts the configuration of another program into resources, and lists what could not be converted. Nothing that exists is
 * changed. Secrets are written into `.plat/secrets` only.
 * @returns 0 if everything was converted, 3 otherwise
 */
export async function importFile(options: ImportOptions, output: Output): Promise<number> {
  const { format, file, dir, agent, env = process.env } = options
  checkAgentName(agent)
  const text = await readText(file)
  const draft = await Draft.of(homeOf(dir))
  const notes = new Notes()
  const using = { draft, notes, env }
  const next = format === 'litellm' ? importModels(text, options, using) : importServers(text, options, using)
  const todo = await draft.write(output)
  notes.print(file, format === 'litellm' || format === 'compose' ? text : withoutComments(text), output)
  for (const line of [...todo, ...next]) output.out(`next: ${plain(line)}`)
  for (const line of nextSteps({ dir, agent, env })) output.out(line)
  return notes.count === 0 ? 0 : EXIT.found
}

/** @throws CommandError with exit code 2 */
export function checkAgentName(agent: string): void {
  if (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(agent)) return
  throw new CommandError(
    `${JSON.stringify(agent)} cannot be the name of an agent: use lower-case letters, digits and -`,
    2,
  )
}

function importServers(text: string, { format, file, agent }: ImportOptions, using: ConvertOptions): readonly string[] {
  const found = format === 'compose' ? serversOfCompose(text, file, using.notes) : serversIn(text, file)
  const servers = found.filter((server) => addServer(server, using)).map(({ name }) => name)
  return addAgent(using.draft, { agent, servers, modelRoutes: [] })
}

function importModels(text: string, { file, agent }: ImportOptions, using: ConvertOptions): readonly string[] {
  const { draft } = using
  const { routes, prices, budget } = convertLiteLLM(text, file, using)
  const names = Object.keys(routes)
  const isNew = !existsSync(join(draft.home.dir, 'gateway.json'))
  const target = isNew ? 'gateway.json' : 'gateway.litellm.json'
  const keys = { $schema: '.plat/schemas/gateway.schema.json', models: routes }
  draft.file(target, `${JSON.stringify(keys, null, 2)}\n`)
  if (Object.keys(prices).length > 0) {
    const priceFile = { version: 1, currency: 'USD', id: 'litellm', models: prices }
    draft.file('prices.json', `${JSON.stringify(priceFile, null, 2)}\n`)
  }
  if (budget !== null) {
    const comment = 'The limit of the LiteLLM proxy: what all calls of the agent may cost together.'
    draft.resource('BudgetPolicy', 'litellm', { spec: { selector: { agents: [agent] }, ...budget }, comment })
  }
  const steps = isNew ? [] : [`copy "models" of ${target} into gateway.json`]
  return [...steps, ...addAgent(draft, { agent, servers: [], modelRoutes: names })]
}

async function readText(file: string): Promise<string> {
  const bytes = await readFile(file).catch((error: unknown) => {
    throw new CommandError(`${file} cannot be read: ${reasonOf(error)}`)
  })
  if (bytes.length > FILE_MAX_BYTES) throw new CommandError(`${file}: larger than ${FILE_MAX_BYTES} bytes`)
  return bytes.toString('utf8')
}
