import { createServer, request } from 'node:http'
import { closed, listening } from './local.ts'

export interface Balancer {
  readonly url: string
  /** Number of requests that each target received. */
  readonly counts: readonly number[]
  close(): Promise<void>
}

/** Sends each request to the next of these base URLs, as a balancer without sticky sessions does. */
export async function startBalancer(targets: readonly string[]): Promise<Balancer> {
  const counts = targets.map(() => 0)
  let next = 0
  const server = createServer((incoming, response) => {
    const at = next++ % targets.length
    counts[at] = (counts[at] ?? 0) + 1
    const { method, headers, url = '/' } = incoming
    const outgoing = request(new URL(url, targets[at]), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    incoming.pipe(outgoing)
  })
  const port = await listening(server)
  return { url: `http://127.0.0.1:${port}`, counts, close: () => closed(server) }
}
