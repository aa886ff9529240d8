import type { AgentCard, Message, Part, Task, TaskStatusUpdateEvent } from 'a2a-sdk-0.3'
import {
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  type RequestContext,
} from 'a2a-sdk-0.3/server'
import { type Instead, startAgentServer, type TestAgent } from './a2a-server.ts'

/** Starts an agent that speaks only A2A 0.3, made with that version of the protocol's SDK. It follows `LegacyInstruction`. */
export function startLegacyAgent({ instead = () => false }: { readonly instead?: Instead } = {}): Promise<TestAgent> {
  return startAgentServer((url) => {
    const card = cardAt(url)
    const pushes = new InMemoryPushNotificationStore()
    const handler = new JsonRpcTransportHandler(
      new DefaultRequestHandler(card, new InMemoryTaskStore(), new LegacyInstruction(), undefined, pushes),
    )
    return { card, respond: ({ body }) => handler.handle(JSON.parse(body)) }
  }, instead)
}

function cardAt(url: string): AgentCard {
  return {
    protocolVersion: '0.3.0',
    name: 'legacy agent',
    description: 'does what it is instructed to do',
    url,
    preferredTransport: 'JSONRPC',
    version: '3.0.0',
    capabilities: { streaming: true, pushNotifications: true },
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'own', name: 'own', description: 'own', tags: ['own'] }],
  }
}

/**
 * Does what a message says: `hello…` is answered by a message with the parts that it got, `work <text>` by a task that ends with its words
 * as pieces of an artifact, `wait` by a task that works until it is cancelled, and `need` by one that needs input.
 */
class LegacyInstruction implements AgentExecutor {
  readonly #waiting = new Map<string, () => void>()

  async execute({ taskId, contextId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const words = userMessage.parts.map((part) => (part.kind === 'text' ? part.text : '')).join('')
    if (words.startsWith('hello')) {
      bus.publish(messageOf(contextId, userMessage.parts))
      bus.finished()
      return
    }
    const task: Task = { kind: 'task', id: taskId, contextId, status: { state: 'submitted' }, history: [userMessage] }
    bus.publish(task)
    const status = (state: Task['status']['state'], final: boolean) => {
      const update: TaskStatusUpdateEvent = { kind: 'status-update', taskId, contextId, status: { state }, final }
      bus.publish(update)
    }
    status('working', false)
    if (words === 'wait') {
      await new Promise<void>((resolve) => this.#waiting.set(taskId, resolve))
      status('canceled', true)
    } else if (words === 'need') {
      status('input-required', true)
    } else {
      for (const [at, piece] of words
        .replace(/^work /, '')
        .split('|')
        .entries())
        bus.publish({
          kind: 'artifact-update',
          taskId,
          contextId,
          artifact: { artifactId: 'result', parts: [{ kind: 'text', text: piece }] },
          append: at > 0,
          lastChunk: false,
        })
      status('completed', true)
    }
    bus.finished()
  }

  cancelTask = async (taskId: string): Promise<void> => {
    this.#waiting.get(taskId)?.()
  }
}

let messages = 0

function messageOf(contextId: string, parts: Part[]): Message {
  return { kind: 'message', messageId: `answer-${++messages}`, role: 'agent', contextId, parts }
}
