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
import { type Instead, startAgentServer, type TestAgent } from './a2a-server.ts'

export interface TestAgentSetup {
  /** Laid over its card. */
  readonly card?: object
  readonly instead?: Instead
  /** Called with the text of each message while the agent handles it, before its message or its task's result. */
  readonly work?: (text: string) => Promise<void>
}

/** Starts an agent that speaks A2A 1.0 on a free port of loopback. The text of a message instructs it; see `AgentInstruction`. */
export function startTestAgent({
  card = {},
  instead = () => false,
  work = async () => {},
}: TestAgentSetup = {}): Promise<TestAgent> {
  return startAgentServer((url) => {
    const described = AgentCard.fromJSON({ ...cardAt(url), ...card })
    const pushes = new InMemoryPushNotificationStore()
    const handler = new JsonRpcTransportHandler(
      new DefaultRequestHandler(described, new InMemoryTaskStore(), new AgentInstruction(work), undefined, pushes),
    )
    return {
      card: AgentCard.toJSON(described),
      respond: ({ headers, body }) =>
        handler.handle(
          JSON.parse(body),
          defaultServerCallContextBuilder({
            extensions: Extensions.parseServiceParameter(undefined),
            user: new UnauthenticatedUser(),
            headers,
            requestedVersion: String(headers['a2a-version']),
          }),
        ),
    }
  }, instead)
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
