import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { closed, listening } from './local.ts'

/** Request received by an upstream. */
export interface Received {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  /** The body's bytes, as text. */
  readonly body: string
  /** True once the connection was lost before the answer was complete. */
  aborted: boolean
}

/** Answers one request in any way the test wants: odd frames, odd chunks, or none at all. */
export type Script = (request: Received, response: ServerResponse) => void | Promise<void>

/** A raw MCP upstream that does what its script says. */
export interface ScriptedUpstream {
  /** `http://127.0.0.1:<port>/mcp` */
  readonly url: string
  readonly received: readonly Received[]
  /** The next requests are answered by this script. */
  answers(script: Script): void
  /** The `count`th request (from 1), once it has come. */
  request(count: number): Promise<Received>
  close(): Promise<void>
}

/** Starts a scripted upstream on a free port; until it has a script it answers 500. */
export async function startScriptedUpstream(): Promise<ScriptedUpstream> {
  const received: Received[] = []
  let script: Script = (_, response) => void response.writeHead(500).end()
  let arrived = Promise.withResolvers<void>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', headers } = request
    const one = { method, headers, body: Buffer.concat(chunks).toString('utf8'), aborted: false }
    response.once('close', () => {
      one.aborted = !response.writableFinished
    })
    received.push(one)
    arrived.resolve()
    arrived = Promise.withResolvers()
    await script(one, response)
  })
  const port = await listening(server)
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    received,
    answers(next) {
      script = next
    },
    async request(count) {
      for (;;) {
        const one = received[count - 1]
        if (one !== undefined) return one
        await arrived.promise
      }
    },
    async close() {
      await closed(server)
    },
  }
}

/** Answers with one JSON body. */
export function json(body: string, headers: Record<string, string> = {}): Script {
  return (_, response) => void response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body)
}

/** Answers with an event stream, one write a chunk; without `end` the stream stays open. */
export function stream(chunks: readonly string[], { end = true } = {}): Script {
  return async (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const chunk of chunks) {
      response.write(chunk)
      await new Promise((resolve) => setImmediate(resolve))
    }
    if (end) response.end()
  }
}
