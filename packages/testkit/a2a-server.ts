import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { closed, listening } from './local.ts'

/** A request as it reached the agent. */
export interface Reached {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A real agent that speaks A2A over JSON-RPC, made with the protocol's own SDK. */
export interface TestAgent {
  /** Where it is called. */
  readonly url: string
  /** Everything that was posted to it, in order. */
  readonly reached: readonly Reached[]
  /** Number of requests for its card. */
  readonly cardsServed: number
  close(): Promise<void>
}

/** An agent at its address. */
export interface ServedAgent {
  readonly card: unknown
  /** Returns the response of the SDK, or the events of a stream. */
  readonly respond: (request: Reached) => Promise<unknown>
}

/** Sends a response in place of the SDK, for what no honest agent sends; returns false if it did not. */
export type Instead = (request: Reached, response: ServerResponse) => boolean

/** Serves the agent that `create` returns for its address, on a free port of loopback. */
export async function startAgentServer(create: (url: string) => ServedAgent, instead: Instead): Promise<TestAgent> {
  const reached: Reached[] = []
  let cardsServed = 0
  const server = createServer((request, response) => void answer(request, response))
  const url = `http://127.0.0.1:${await listening(server)}/rpc`
  const { card, respond } = create(url)
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'GET') {
      cardsServed++
      return sendJson(card, response)
    }
    const body = await text(request)
    const one = { method: String(JSON.parse(body).method), headers: request.headers, body }
    reached.push(one)
    if (!instead(one, response)) await send(await respond(one), response)
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

async function send(result: unknown, response: ServerResponse): Promise<void> {
  if (!isStream(result)) return sendJson(result, response)
  response.setHeader('content-type', 'text/event-stream')
  response.flushHeaders()
  try {
    for await (const event of result) response.write(`data: ${JSON.stringify(event)}\n\n`)
  } finally {
    response.end()
  }
}

function sendJson(value: unknown, response: ServerResponse): void {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(value))
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}
