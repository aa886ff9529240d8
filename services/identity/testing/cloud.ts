import http from 'node:http'
import type { TestContext } from 'node:test'
import { listening } from '@plat/testkit/local'

/** One request as the cloud got it. */
export interface CloudCall {
  readonly method: string
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

/** An answer; `never` sends none, `stalls` sends a head and half of a body. */
export type CloudReply =
  | { readonly status: number; readonly body: string | Uint8Array; readonly location?: string }
  | 'never'
  | 'stalls'

export interface TestCloud {
  readonly url: string
  readonly calls: CloudCall[]
}

/** A server in place of a cloud's, which answers what the test says for each request. */
export async function startTestCloud(
  t: TestContext,
  reply: (call: CloudCall, nth: number) => CloudReply | Promise<CloudReply>,
): Promise<TestCloud> {
  const calls: CloudCall[] = []
  const server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(Buffer.from(chunk))
    const { method = '', url: path = '', headers } = request
    const call = { method, path, headers, body: Buffer.concat(chunks).toString() }
    calls.push(call)
    const answer = await reply(call, calls.length)
    if (answer === 'never') return
    if (answer === 'stalls') {
      response.writeHead(200, { 'content-length': '100' }).write('{')
      return
    }
    const { status, body, location } = answer
    response.writeHead(status, location === undefined ? {} : { location }).end(body)
  })
  const port = await listening(server)
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${port}`, calls }
}
