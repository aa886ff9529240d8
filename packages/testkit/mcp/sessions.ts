import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node'
import type { EventStore, JSONRPCMessage, McpServer } from '@modelcontextprotocol/server'

/** How long a client waits before it takes up a closed stream again, in milliseconds. */
const RETRY_MS = 50

/** Serves the revisions that have sessions, one server a session, with streams that can be taken up again. */
export class Sessions {
  readonly #make: () => McpServer
  readonly #open = new Map<string, NodeStreamableHTTPServerTransport>()

  constructor(make: () => McpServer) {
    this.#make = make
  }

  async handle(request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void> {
    const id = request.headers['mcp-session-id']
    const transport = typeof id === 'string' ? this.#open.get(id) : await this.#begin()
    if (transport === undefined) response.writeHead(404).end()
    else await transport.handleRequest(request, response, body)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((transport) => transport.close()))
  }

  async #begin(): Promise<NodeStreamableHTTPServerTransport> {
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new MemoryEvents(),
      retryInterval: RETRY_MS,
      onsessioninitialized: (id) => void this.#open.set(id, transport),
      onsessionclosed: (id) => void this.#open.delete(id),
    })
    await this.#make().connect(transport)
    return transport
  }
}

/** The events of one session, in order. */
class MemoryEvents implements EventStore {
  readonly #events: { id: string; stream: string; message: JSONRPCMessage }[] = []

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const id = String(this.#events.length + 1)
    this.#events.push({ id, stream, message })
    return id
  }

  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    return this.#events.find((event) => event.id === id)?.stream
  }

  async replayEventsAfter(
    lastId: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const stream = (await this.getStreamIdForEventId(lastId)) ?? ''
    const missed = this.#events.filter((event) => event.stream === stream && Number(event.id) > Number(lastId))
    for (const { id, message } of missed) if ('method' in message || 'id' in message) await send(id, message)
    return stream
  }
}
