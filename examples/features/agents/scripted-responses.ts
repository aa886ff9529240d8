/** OpenAI's responses for the scripted model: Codex CLI speaks no other API. */
import type { ServerResponse } from 'node:http'
import type { Block, Chat, Reply } from './conversation.ts'

interface Tool {
  readonly type: string
  readonly name: string
  readonly tools?: readonly Tool[]
}

interface Item {
  readonly type: string
  readonly output?: string | readonly Block[]
  readonly content?: string | readonly Block[]
}

export interface ResponsesRequest {
  readonly input: readonly Item[]
  readonly tools?: readonly Tool[]
}

const SEPARATOR = '__'

/** Returns the same conversation as messages. Tools of a namespace get its name as a prefix. */
export function chatOf({ input, tools = [] }: ResponsesRequest): Chat {
  const messages = input.map(({ type, output = '', content = '' }) => ({
    content: type === 'function_call_output' ? [{ type: 'tool_result', content: output }] : content,
  }))
  const names = tools.flatMap(({ type, name, tools: own = [] }) =>
    type === 'namespace' ? own.map((tool) => `${name}${SEPARATOR}${tool.name}`) : [name],
  )
  return { messages, tools: names.map((name) => ({ name })) }
}

/** Sends the events of a streamed response. */
export function streamResponse(response: ServerResponse, reply: Reply): void {
  const item = itemOf(reply)
  const base = { id: `resp_${item.id}`, object: 'response', created_at: 1, model: 'scripted-1', status: 'in_progress' }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  let sequence_number = 0
  const send = (type: string, more: object) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence_number++, ...more })}\n\n`)
  send('response.created', { response: { ...base, output: [] } })
  send('response.output_item.added', { output_index: 0, item: { ...item, status: 'in_progress' } })
  send('response.output_item.done', { output_index: 0, item })
  const details = { input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } }
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2, ...details }
  send('response.completed', { response: { ...base, status: 'completed', output: [item], usage } })
  response.end()
}

let items = 0

function itemOf(reply: Reply) {
  const id = `item_${++items}`
  if (reply.type === 'text') {
    const content = [{ type: 'output_text', text: reply.text, annotations: [] }]
    return { type: 'message', id, role: 'assistant', status: 'completed', content }
  }
  const parts = reply.name.split(SEPARATOR)
  const name = parts.pop()
  const namespace = parts.length > 0 && { namespace: parts.join(SEPARATOR) }
  const call = { call_id: reply.id, name, ...namespace, arguments: JSON.stringify(reply.input) }
  return { type: 'function_call', id, status: 'completed', ...call }
}
