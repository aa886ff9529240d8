/** Setup of the examples: plat on free ports with a temporary folder, the notes server and the scripted model of the quickstart. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { startUp } from '@plat/cli'
import { startModel } from '@plat/quickstart/model'
import { startNotes } from '@plat/quickstart/notes'
import { broker, connect, deniedBy, type Session, untilApproved } from '@plat/sdk'
import OpenAI from 'openai'

const COMMAND = fileURLToPath(new URL('../../apps/cli/bin/plat.mjs', import.meta.url))
const PLURALS = {
  Agent: 'agents',
  BudgetPolicy: 'budgetpolicies',
  MCPServer: 'mcpservers',
  ToolPolicy: 'toolpolicies',
}

export interface Setup {
  /** `spec.rules` of the ToolPolicy of agent `assistant`, in YAML. */
  readonly rules?: string
  /** MCP servers of the agent. */
  readonly tools?: readonly string[]
  /** Further lines of the specs of Agent `assistant` and MCPServer `notes`, and of `gateway.json`. */
  readonly agent?: string
  readonly server?: string
  readonly gateway?: object
  readonly prices?: object
  /** The model of the agent; `{model}` in it is the address of the scripted model. */
  readonly model?: string
  /** Specs of further resources by `<kind>/<name>`. */
  readonly resources?: Readonly<Record<string, string>>
}

/** A running plat, for the length of an example. */
export class Plat implements AsyncDisposable {
  readonly dir: string
  readonly env: Readonly<Record<string, string>>
  readonly #stack: AsyncDisposableStack

  constructor(dir: string, env: Readonly<Record<string, string>>, stack: AsyncDisposableStack) {
    this.dir = dir
    this.env = env
    this.#stack = stack
  }

  /** A session of an agent, with a token of the identity broker. */
  session(agent = 'assistant', scopes = ['tools:notes', `models:default.${agent}`], user = 'ada'): Promise<Session> {
    const { PLAT_IDENTITY_URL = '', PLAT_GATEWAY_URL = '', PLAT_BROKER_TOKEN = '' } = this.env
    const identityURL = PLAT_IDENTITY_URL
    const source = { identityURL, brokerToken: PLAT_BROKER_TOKEN, namespace: 'default', agent, scopes }
    return connect({
      gatewayURL: PLAT_GATEWAY_URL,
      identityURL,
      source: broker({ ...source, session: 'example', user }),
    })
  }

  /** Calls a tool of a server, and prints the call with its result or the reason of its refusal. */
  async call(session: Session, name: string, args: Record<string, unknown>, server = 'notes'): Promise<void> {
    const client = new Client({ name: 'example', version: '1.0.0' })
    const { url, ...options } = session.mcp(server)
    await client.connect(new StreamableHTTPClientTransport(url, options))
    const result = await untilApproved(() => client.callTool({ name, arguments: args })).catch(refusal)
    const text =
      typeof result === 'string' ? result : result.content.map((part) => ('text' in part ? part.text : '')).join('')
    console.log(`${name} ${JSON.stringify(args)}: ${text}`)
    await client.close()
  }

  /** Sends a prompt to the agent's model, and prints the completion or the reason of the refusal. */
  async prompt(session: Session, content: string, label = content): Promise<void> {
    const openai = new OpenAI({ ...session.openai(), maxRetries: 0 })
    const messages = [{ role: 'user' as const, content }]
    const completion = await openai.chat.completions
      .create({ model: 'scripted-1', messages, max_tokens: 100 })
      .catch(refusal)
    console.log(`${label}: ${typeof completion === 'string' ? completion : completion.choices[0]?.message.content}`)
  }

  /** Runs the command `plat` in the folder of the example; returns what it prints. */
  command(...args: readonly string[]): Promise<string> {
    return new Promise((resolve) =>
      execFile(process.execPath, [COMMAND, ...args], { cwd: this.dir }, (_, out, err) => resolve(out + err)),
    )
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync()
  }
}

/** The reason of a refusal as one line; throws what is none. */
export function refusal(error: unknown): string {
  const denied = deniedBy(error)
  if (denied === null) throw error
  return `refused (${denied.code}${denied.rule === null ? '' : `, rule ${denied.rule}`})`
}

/** Starts plat with the resources of an example. `await using plat = await start(…)` stops it at the end. */
export async function start(setup: Setup): Promise<Plat> {
  const {
    rules = '[{ name: all, action: allow }]',
    tools = ['notes'],
    agent = '',
    server = '',
    gateway = {},
    prices,
    resources = {},
  } = setup
  await using stack = new AsyncDisposableStack()
  const dir = await mkdtemp(path.join(tmpdir(), 'plat-example-'))
  stack.defer(() => rm(dir, { recursive: true }))
  const notes = stack.adopt(await startNotes({ port: 0, dir }), (it) => it.close())
  const model = stack.adopt(await startModel({ port: 0 }), (it) => it.close())
  const route = (setup.model ?? 'name: scripted-1\nendpoint: {model}').replaceAll('{model}', model.url)
  const specs = {
    'Agent/assistant': `image: example.com/assistant:1\ntier: tier-0\npolicyRef: assistant\ntools: ${JSON.stringify(tools.map((name) => ({ name })))}\nmodel:\n${indented(route)}\n${agent}`,
    'MCPServer/notes': `url: ${notes.url}\n${server || 'trust: trusted'}`,
    'ToolPolicy/assistant': `rules: ${rules}`,
    ...resources,
  }
  for (const [id, spec] of Object.entries(specs)) await writeResource(dir, id, spec)
  await writeFile(path.join(dir, 'gateway.json'), JSON.stringify(gateway))
  if (prices) await writeFile(path.join(dir, 'prices.json'), JSON.stringify(prices))
  const plat = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  stack.defer(() => plat.stop())
  for (const line of (await plat.problems()).refused) console.error(line)
  return new Plat(dir, { ...plat.env }, stack.move())
}

async function writeResource(dir: string, id: string, spec: string): Promise<void> {
  const [kind = '', name = ''] = id.split('/')
  const plural = Object.entries(PLURALS).find(([one]) => one === kind)?.[1] ?? `${kind.toLowerCase()}s`
  const folder = path.join(dir, 'resources', plural, 'default')
  await mkdir(folder, { recursive: true })
  const head = `apiVersion: plat.dev/v1alpha1\nkind: ${kind}\nmetadata: { name: ${name}, namespace: default }\nspec:\n`
  await writeFile(path.join(folder, `${name}.yaml`), head + indented(spec))
}

function indented(text: string): string {
  return text.replace(/^/gm, '  ')
}
