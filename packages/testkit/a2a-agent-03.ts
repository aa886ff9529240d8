import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
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
import type { Reached, TestAgent, TestAgentSetup } from './a2a-agent.ts'
import { closed, listening } from './local.ts'

/** Starts an agent that speaks only A2A 0.3, made with that version of the protocol's SDK. It follows `LegacyInstruction`. */
export async function startLegacyAgent({
  instead = () => false,
}: Pick<TestAgentSetup, 'instead'> = {}): Promise<TestAgent> {
  const reached: Reached[] = []
  let cardsServed = 0
  const server = createServer((request, response) => void answer(request, response))
  const url = `http://127.0.0.1:${await listening(server)}/rpc`
  const card = cardAt(url)
  const pushes = new InMemoryPushNotificationStore()
  const handler = new JsonRpcTransportHandler(
    new DefaultRequestHandler(card, new InMemoryTaskStore(), new LegacyInstruction(), undefined, pushes),
  )
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'GET') {
      cardsServed++
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(card))
      return
    }
    const body = await text(request)
    const one = { method: String(JSON.parse(body).method), headers: request.headers, body }
    reached.push(one)
    if (!instead(one, response)) await answerBySdk(handler, body, response)
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

async function answerBySdk(handler: JsonRpcTransportHandler, body: string, response: ServerResponse): Promise<void> {
  const answer = await handler.handle(JSON.parse(body))
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
