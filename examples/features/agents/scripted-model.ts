/** A model behind the gateway that takes the steps of the scenario, one after another, and keeps what it reads. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { closed, listening } from '@plat/testkit/local'
import type { Block, Chat, Reply } from './conversation.ts'
import { isWaiting, type Step } from './scenario.ts'
import { chatOf, streamResponse } from './scripted-responses.ts'

/** The tool of Claude Code that loads the definitions of others. */
const TOOL_SEARCH = 'ToolSearch'

export interface ScriptedModel {
  /** Base URL of Anthropic's messages, and of OpenAI's responses. */
  readonly url: string
  /** Returns the results of tools in a conversation whose prompt has the text `Task <id>`, in order. */
  read(id: string): readonly string[]
  close(): Promise<void>
}

/**
 * Starts the model. It needs no memory: each request has the conversation so far. After a result that says that the call waits it responds
 * `pauseMs` later.
 */
export async function startScriptedModel(steps: readonly Step[], pauseMs: number): Promise<ScriptedModel> {
  const conversations = new Map<string, readonly string[]>()
  const server = createServer(async (request, response) => {
    const body = JSON.parse((await textOf(request)) || '{"messages":[]}')
    const isResponses = request.url?.endsWith('/responses') === true
    const chat: Chat = isResponses ? chatOf(body) : body
    const id = /Task (run-[\w-]+)/.exec(JSON.stringify(chat.messages))?.[1] ?? ''
    const results = resultsIn(chat)
    if (results.length >= (conversations.get(id) ?? []).length) conversations.set(id, results)
    if (isWaiting(results.at(-1) ?? '')) await sleep(pauseMs)
    const reply = nextBlock(id, chat, steps[results.filter((result) => !isWaiting(result)).length])
    if (isResponses) streamResponse(response, reply)
    else answer(response, chat, reply)
  })
  const port = await listening(server)
  return {
    url: `http://127.0.0.1:${port}/v1`,
    read: (id) => conversations.get(id) ?? [],
    close: () => closed(server),
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

/** Texts of the results of the steps so far. */
function resultsIn({ messages }: Chat): readonly string[] {
  const all = messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content))
  const searches = new Set(all.filter(({ name }) => name === TOOL_SEARCH).map(({ id }) => id))
  return all
    .filter(({ type, tool_use_id: id }) => type === 'tool_result' && !searches.has(id))
    .map(({ content = '' }) => flat(content))
}

function flat(content: string | readonly Block[]): string {
  return typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('')
}

let blocks = 0

function nextBlock(task: string, { tools = [] }: Chat, step: Step | undefined): Reply {
  if (step === undefined) return { type: 'text', text: `finished ${task}` }
  // Agents put the name of the server before that of the tool, and replace what is not a letter.
  const plain = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, '_')
  const names = tools.map((tool) => tool.name).filter((one) => plain(one).endsWith(plain(step.tool)))
  const name = names.find((one) => one.includes(step.server)) ?? names[0]
  const id = `toolu_${++blocks}`
  if (name !== undefined) return { type: 'tool_use', id, name, input: step.arguments }
  if (!tools.some((tool) => tool.name === TOOL_SEARCH)) return { type: 'text', text: `no tool ${step.tool}` }
  const query = `select:mcp__${step.server}__${step.tool}`
  return { type: 'tool_use', id, name: TOOL_SEARCH, input: { query, max_results: 5 } }
}

function answer(response: ServerResponse, { stream }: Chat, block: Reply): void {
  const stop_reason = block.type === 'text' ? 'end_turn' : 'tool_use'
  const usage = { input_tokens: 1, output_tokens: 1 }
  const base = { id: `msg_${++blocks}`, type: 'message', role: 'assistant', model: 'scripted-1', stop_sequence: null }
  if (stream !== true) {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ ...base, content: [block], stop_reason, usage }))
    return
  }
  const [empty, delta] =
    block.type === 'text'
      ? [
          { ...block, text: '' },
          { type: 'text_delta', text: block.text },
        ]
      : [
          { ...block, input: {} },
          { type: 'input_json_delta', partial_json: JSON.stringify(block.input) },
        ]
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (type: string, more: object) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`)
  send('message_start', { message: { ...base, content: [], stop_reason: null, usage } })
  send('content_block_start', { index: 0, content_block: empty })
  send('content_block_delta', { index: 0, delta })
  send('content_block_stop', { index: 0 })
  send('message_delta', { delta: { stop_reason, stop_sequence: null }, usage })
  send('message_stop', {})
  response.end()
}
