import { inputRequired, type McpRequestContext, type McpServer } from '@modelcontextprotocol/server'
import { addTool, text } from './tools.ts'

/** What a form asks for: texts, all required. Made anew for each question, because the SDK's types want no shared constants. */
function form(...names: string[]) {
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' as const, description: name }]))
  return { type: 'object' as const, properties, required: names }
}

/** Tools that ask the client for something: what the gateway does not carry yet. */
export function addAsks(server: McpServer, era: McpRequestContext['era']): void {
  if (era === 'modern') addRounds(server)
  else addRequests(server)
}

/**
 * Before 2026-07-28 a server sends a request of its own. Each is tied to the call that it came from: what goes over the standalone
 * stream is lost when a client calls before that stream stands.
 */
function addRequests(server: McpServer): void {
  addTool(server, 'test_sampling', async ({ mcpReq }) => {
    const message = { role: 'user', content: { type: 'text', text: 'Say something.' } } as const
    const params = { messages: [message], maxTokens: 100 }
    const { content } = await mcpReq.send({ method: 'sampling/createMessage', params })
    return text(`LLM response: ${JSON.stringify(content)}`)
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
}

/** From 2026-07-28 on a result says what is missing, and the client calls again. */
function addRounds(server: McpServer): void {
  addTool(server, 'test_input_required_result_elicitation', ({ mcpReq }) => {
    const answer = mcpReq.inputResponses?.user_name
    if (answer !== undefined) return text(`Hello ${JSON.stringify(answer)}`)
    const ask = inputRequired.elicit({ message: 'What is your name?', requestedSchema: form('name') })
    return inputRequired({ inputRequests: { user_name: ask } })
  })
}
