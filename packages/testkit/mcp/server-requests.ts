import type { McpRequestContext, McpServer } from '@modelcontextprotocol/server'
import { addRounds } from './rounds.ts'
import { addTool, text } from './tools.ts'

/** A form with texts, all required. Created for each request, because the SDK's types do not accept shared constants. */
function form(...names: string[]) {
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' as const, description: name }]))
  return { type: 'object' as const, properties, required: names }
}

/** Adds tools that send requests to the client. */
export function addServerRequests(server: McpServer, era: McpRequestContext['era']): void {
  if (era === 'modern') addRounds(server)
  else addRequests(server)
}

/**
 * Before 2026-07-28 a server sends requests. Each is tied to its call: messages on the standalone stream are lost when a client calls before that
 * stream is open.
 */
function addRequests(server: McpServer): void {
  addTool(server, 'test_sampling', async ({ mcpReq }) => {
    const message = { role: 'user', content: { type: 'text', text: 'Say something.' } } as const
    const params = { messages: [message], maxTokens: 100 }
    const steps: number[] = []
    const onprogress = ({ progress }: { readonly progress: number }) => void steps.push(progress)
    const { content } = await mcpReq.send({ method: 'sampling/createMessage', params }, { onprogress })
    return text(`LLM response: ${JSON.stringify(content)}${steps.map((step) => `, progress ${step}`).join('')}`)
  })
  addTool(server, 'test_elicitation', async ({ mcpReq }) => {
    const params = { message: 'Who are you?', requestedSchema: form('username', 'email') }
    const answer = await mcpReq.send({ method: 'elicitation/create', params })
    return text(`User response: ${JSON.stringify(answer)}`)
  })
  addTool(server, 'test_elicitation_sep1034_defaults', async ({ mcpReq }) => {
    const params = {
      message: 'Keep the defaults?',
      requestedSchema: {
        type: 'object',
        properties: {
          name: { type: 'string', default: 'John Doe' },
          age: { type: 'integer', default: 30 },
          score: { type: 'number', default: 95.5 },
          status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
          verified: { type: 'boolean', default: true },
        },
      },
    }
    const answer = await mcpReq.send({ method: 'elicitation/create', params })
    return text(`Elicitation completed: ${JSON.stringify(answer)}`)
  })
  addChoices(server)
}

/** A form with every kind of choice. */
function addChoices(server: McpServer): void {
  addTool(server, 'test_elicitation_sep1330_enums', async ({ mcpReq }) => {
    const plain = ['option1', 'option2', 'option3']
    const titled = [
      { const: 'value1', title: 'First' },
      { const: 'value2', title: 'Second' },
    ]
    const params = {
      message: 'Choose.',
      requestedSchema: {
        type: 'object',
        properties: {
          untitledSingle: { type: 'string', enum: plain },
          titledSingle: { type: 'string', oneOf: titled },
          legacyEnum: { type: 'string', enum: ['opt1', 'opt2'], enumNames: ['Option One', 'Option Two'] },
          untitledMulti: { type: 'array', items: { type: 'string', enum: plain } },
          titledMulti: { type: 'array', items: { anyOf: titled } },
        },
      },
    }
    const answer = await mcpReq.send({ method: 'elicitation/create', params })
    return text(`Elicitation completed: ${JSON.stringify(answer)}`)
  })
}
