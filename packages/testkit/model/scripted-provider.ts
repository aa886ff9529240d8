import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { closed, listening } from '../local.ts'

export interface ProviderRequest {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A server that records requests and answers each with the response set last. */
export class ScriptedProvider {
  readonly received: ProviderRequest[] = []
  #respond: (response: ServerResponse) => void = (response) => response.end()
  readonly #server = createServer(async (request, response) => {
    const { url = '', headers } = request
    this.received.push({ url, headers, body: await text(request) })
    this.#respond(response)
  })

  /** Returns its origin. */
  async start(): Promise<string> {
    return `http://127.0.0.1:${await listening(this.#server)}`
  }

  close(): Promise<void> {
    return closed(this.#server)
  }

  /** The last request. Throws if there is none. */
  last(): ProviderRequest {
    const last = this.received.at(-1)
    if (last === undefined) throw new Error('no request was received')
    return last
  }

  /** Answers with JSON from now on. */
  reply(body: object, status = 200): void {
    this.#respond = (response) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

  /** Answers with a stream from now on. */
  stream(type: string, parts: readonly Buffer[]): void {
    this.#respond = (response) => {
      response.writeHead(200, { 'content-type': type })
      for (const part of parts) response.write(part)
      response.end()
    }
  }
}
