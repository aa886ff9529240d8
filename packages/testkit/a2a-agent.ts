import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { AgentCard, Extensions, type Message, Role, type Task, TaskState } from '@a2a-js/sdk'
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  defaultServerCallContextBuilder,
  type ExecutionEventBus,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  type RequestContext,
  UnauthenticatedUser,
} from '@a2a-js/sdk/server'
import { closed, listening } from './local.ts'

/** A request as it reached the agent. */
export interface Reached {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A real agent that speaks A2A 1.0 over JSON-RPC, made with the protocol's own SDK. */
export interface TestAgent {
  /** Where it is called. */
  readonly url: string
  /** Everything that was posted to it, in order. */
  readonly reached: readonly Reached[]
  /** Number of requests for its card. */
  readonly cardsServed: number
  close(): Promise<void>
}

export interface TestAgentSetup {
  /** Laid over its card. */
  readonly card?: object
  /** Answers posts in place of the SDK, for what no honest agent sends; false: it did not. */
  readonly instead?: (request: Reached, response: ServerResponse) => boolean
  /** Called with the text of each message while the agent handles it, before its message or its task's result. */
  readonly work?: (text: string) => Promise<void>
}

/** Starts it on a free port of loopback. What it does is said by the text of a message; see `AgentInstruction`. */
export async function startTestAgent({
  card = {},
  instead = () => false,
  work = async () => {},
}: TestAgentSetup = {}): Promise<TestAgent> {
  const reached: Reached[] = []
  let cardsServed = 0
  const server = createServer((request, response) => void answer(request, response))
  const url = `http://127.0.0.1:${await listening(server)}/rpc`
  const described = AgentCard.fromJSON({ ...cardAt(url), ...card })
  const handler = new JsonRpcTransportHandler(
    new DefaultRequestHandler(
      described,
      new InMemoryTaskStore(),
      new AgentInstruction(work),
      undefined,
      new InMemoryPushNotificationStore(),
    ),
  )
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'GET') {
      cardsServed++
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(AgentCard.toJSON(described)))
      return
    }
    const body = await text(request)
    const one = { method: String(JSON.parse(body).method), headers: request.headers, body }
    reached.push(one)
    if (!instead(one, response)) await answerBySdk(handler, one, response)
  }
  return {
    url,
    reached,
    get cardsServed() {
      return cardsServed
    },
    close: () => closed(server),
  }
}

async function answerBySdk(
  handler: JsonRpcTransportHandler,
  { headers, body }: Reached,
  response: ServerResponse,
): Promise<void> {
  const context = defaultServerCallContextBuilder({
    extensions: Extensions.parseServiceParameter(undefined),
    user: new UnauthenticatedUser(),
    headers,
    requestedVersion: String(headers['a2a-version']),
  })
  const answer = await handler.handle(JSON.parse(body), context)
  if (!(Symbol.asyncIterator in answer)) {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(answer))
    return
  }
  response.setHeader('content-type', 'text/event-stream')
  response.flushHeaders()
  try {
    for await (const event of answer) response.write(`data: ${JSON.stringify(event)}\n\n`)
  } finally {
    response.end()
  }
}

function cardAt(url: string): object {
  return {
    name: 'test agent',
    description: 'does what it is instructed to do',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    version: '9.9.9',
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'own', name: 'own', description: 'own', tags: ['own'] }],
  }
}

/**
 * Does what a message says: `hello…` is answered by a message, `work <text>` by a task that ends with that text as its artifact, and
 * `wait` by a task that works until it is cancelled.
 */
class AgentInstruction implements AgentExecutor {
  readonly #waiting = new Map<string, () => void>()
  readonly #work: (text: string) => Promise<void>

  constructor(work: (text: string) => Promise<void>) {
    this.#work = work
  }

  async execute({ taskId, contextId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const text = textOf(userMessage)
    if (text.startsWith('hello')) {
      await this.#work(text)
      bus.publish(AgentEvent.message(messageOf(contextId, '', 'hello yourself')))
      return
    }
    bus.publish(AgentEvent.task(taskOf(taskId, contextId, userMessage)))
    const status = (state: TaskState) =>
      bus.publish(
        AgentEvent.statusUpdate({
          taskId,
          contextId,
          status: { state, message: undefined, timestamp: undefined },
          metadata: undefined,
        }),
      )
    status(TaskState.TASK_STATE_WORKING)
    if (text === 'wait') {
      await new Promise<void>((resolve) => this.#waiting.set(taskId, resolve))
      return status(TaskState.TASK_STATE_CANCELED)
    }
    await this.#work(text)
    for (const [index, part] of text
      .replace(/^work /, '')
      .split('|')
      .entries())
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: {
            artifactId: 'result',
            name: '',
            description: '',
            parts: [partOf(part)],
            metadata: undefined,
            extensions: [],
          },
          append: index > 0,
          lastChunk: false,
          metadata: undefined,
        }),
      )
    status(TaskState.TASK_STATE_COMPLETED)
  }

  async cancelTask(taskId: string): Promise<void> {
    this.#waiting.get(taskId)?.()
  }
}

function taskOf(id: string, contextId: string, requested: Message): Task {
  return {
    id,
    contextId,
    status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: undefined },
    artifacts: [],
    history: [requested],
    metadata: undefined,
  }
}

function textOf({ parts }: Message): string {
  return parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('')
}

function partOf(value: string): Message['parts'][number] {
  return { content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: '' }
}

let messages = 0

/** A message of one text. */
export function messageOf(contextId: string, taskId: string, text: string, metadata?: object): Message {
  return {
    messageId: `message-${++messages}`,
    contextId,
    taskId,
    role: Role.ROLE_USER,
    parts: [partOf(text)],
    metadata: metadata === undefined ? undefined : { ...metadata },
    extensions: [],
    referenceTaskIds: [],
  }
}
