import { randomBytes } from 'node:crypto'
import {
  createRequestStateCodec,
  fromJsonSchema,
  type InputRequests,
  inputRequired,
  type McpServer,
} from '@modelcontextprotocol/server'
import { addTool, text } from './tools.ts'

/** Seals the states that go through the client between two rounds; one key serves all instances of a process. */
export const states = createRequestStateCodec<string>({ key: randomBytes(32) })

/** A form. Created for each request, because the SDK's types do not accept shared constants. */
function ask(message: string, name: string) {
  const properties = { [name]: { type: 'string' as const } }
  const requestedSchema = { type: 'object' as const, properties, required: [name] }
  return inputRequired.elicit({ message, requestedSchema })
}

function sample(question: string) {
  const message = { role: 'user', content: { type: 'text', text: question } } as const
  return inputRequired.createMessage({ messages: [message], maxTokens: 100 })
}

/** From 2026-07-28 on a result says what is missing, and the client calls again. */
export function addRounds(server: McpServer): void {
  addAsking(server, 'test_input_required_result_elicitation', () => ({ user_name: ask('What is your name?', 'name') }))
  addAsking(server, 'test_input_required_result_sampling', () => ({
    capital_question: sample('What is the capital of France?'),
  }))
  addAsking(server, 'test_input_required_result_list_roots', () => ({ client_roots: inputRequired.listRoots() }))
  addAsking(server, 'test_missing_capability', () => ({ thought: sample('Say something.') }))
  addAsking(server, 'test_streaming_elicitation', () => ({ user_name: ask('What is your name?', 'name') }))
  addAsking(server, 'test_input_required_result_capabilities', () => ({
    ...(server.server.getClientCapabilities()?.sampling && { thought: sample('Say something.') }),
    ...(server.server.getClientCapabilities()?.elicitation && { name: ask('What is your name?', 'name') }),
  }))
  addStates(server)
  addPrompt(server)
}

/** A tool that needs answers to the questions of one round. */
function addAsking(server: McpServer, name: string, questions: () => InputRequests): void {
  addTool(server, name, ({ mcpReq }) => {
    const inputRequests = questions()
    const answers = mcpReq.inputResponses
    const missing = Object.keys(inputRequests).some((key) => answers?.[key] === undefined)
    return missing ? inputRequired({ inputRequests }) : text(`Thank you: ${JSON.stringify(answers)}`)
  })
}

/** Tools whose rounds are tied together by a state. */
function addStates(server: McpServer): void {
  for (const name of ['test_input_required_result_request_state', 'test_input_required_result_tampered_state']) {
    addTool(server, name, async ({ mcpReq }) => {
      if (mcpReq.requestState() === 'asked') return text('state-ok')
      const inputRequests = { confirm: ask('Please confirm', 'ok') }
      return inputRequired({ inputRequests, requestState: await states.mint('asked') })
    })
  }
  addTool(server, 'test_input_required_result_multiple_inputs', async ({ mcpReq }) => {
    if (mcpReq.requestState() === 'asked') return text('Thank you for all of it.')
    const inputRequests = {
      user_name: ask('What is your name?', 'name'),
      greeting: sample('Generate a greeting'),
      client_roots: inputRequired.listRoots(),
    }
    return inputRequired({ inputRequests, requestState: await states.mint('asked') })
  })
  addTool(server, 'test_input_required_result_multi_round', async ({ mcpReq }) => {
    const state = mcpReq.requestState()
    if (state === 'second') return text('Both steps are done.')
    const first = state === undefined
    const inputRequests = first
      ? { step1: ask('Step 1: What is your name?', 'name') }
      : { step2: ask('Step 2: What is your favorite color?', 'color') }
    return inputRequired({ inputRequests, requestState: await states.mint(first ? 'first' : 'second') })
  })
}

function addPrompt(server: McpServer): void {
  const argsSchema = fromJsonSchema<object>({ type: 'object', properties: {} })
  const described = { description: 'A prompt that needs an answer', argsSchema }
  server.registerPrompt('test_input_required_result_prompt', described, (_, { mcpReq }) => {
    const answer = mcpReq.inputResponses?.user_context
    if (answer === undefined)
      return inputRequired({ inputRequests: { user_context: ask('What context should the prompt use?', 'context') } })
    return {
      messages: [{ role: 'user', content: { type: 'text', text: `In the context of ${JSON.stringify(answer)}` } }],
    }
  })
}
