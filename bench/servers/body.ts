import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createServer } from 'node:http'

/** The whole body of a request, read the shortest way. */
export function bodyOf(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)))
    request.on('error', reject)
  })
}

export function sendJson(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}

/** Serves on a free port of 127.0.0.1 and prints the line that the harness waits for. */
export function serve(listener: RequestListener): void {
  const server = createServer({ noDelay: true, keepAliveTimeout: 65_000 }, listener)
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    console.log(JSON.stringify({ url: `http://127.0.0.1:${address.port}` }))
  })
  process.once('SIGTERM', () => process.exit(0))
}
