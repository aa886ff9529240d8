import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { closed, listening } from '@plat/testkit/local'

/**
 * How a front responds to tool calls. `overloaded`: refuses the first one as the gateway does. `foreign`: forwards, and then sends a 503 without
 * a body of the gateway. `nonce`: requires a nonce in proofs.
 */
export type FrontMode = 'pass' | 'overloaded' | 'foreign' | 'nonce'

const NONCE = 'nonce-of-the-front'
/** Headers of one connection. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  'host',
  'content-encoding',
])

/** A server before the gateway, such as a load balancer, that misbehaves as a scenario says. */
export class Front {
  mode: FrontMode = 'pass'
  /** Tool calls that reached the gateway, and those that did not. */
  forwarded = 0
  refused = 0
  url = ''
  readonly #gatewayURL: string
  readonly #server = createServer((request, response) => {
    text(request)
      .then((body) =>
        this.#answer(
          { method: request.method ?? '', url: request.url ?? '', headers: request.headers, body },
          response,
        ),
      )
      .catch(() => response.destroy())
  })

  constructor(gatewayURL: string) {
    this.#gatewayURL = gatewayURL
  }

  async start(): Promise<void> {
    this.url = `http://127.0.0.1:${await listening(this.#server)}`
  }

  reset(): void {
    this.mode = 'pass'
    this.forwarded = 0
    this.refused = 0
  }

  close(): Promise<void> {
    return closed(this.#server)
  }

  async #answer(
    { method, url, headers, body }: { method: string; url: string; headers: IncomingHttpHeaders; body: string },
    response: ServerResponse,
  ): Promise<void> {
    const isCall = body.includes('"tools/call"')
    if (isCall && this.mode === 'nonce' && !hasNonce(headers.dpop)) {
      this.refused++
      const challenge = { 'www-authenticate': 'DPoP error="use_dpop_nonce"', 'dpop-nonce': NONCE }
      return refuse(response, 401, 'invalid_dpop_proof', challenge)
    }
    if (isCall && this.mode === 'overloaded' && this.refused === 0) {
      this.refused++
      return refuse(response, 503, 'overloaded', { 'retry-after': '1' })
    }
    const sent = new Headers(
      Object.entries(headers).flatMap(([name, value]) => (HOP_BY_HOP.has(name) ? [] : [[name, String(value)]])),
    )
    const bodyOf = method === 'GET' || method === 'DELETE' ? {} : { body }
    const answer = await fetch(this.#gatewayURL + url, { method, headers: sent, ...bodyOf })
    const content = await answer.text()
    if (isCall) this.forwarded++
    if (isCall && this.mode === 'foreign') {
      response.writeHead(503, { 'retry-after': '1', 'content-type': 'application/json' }).end('{"error": "overloaded"}')
      return
    }
    const received = [...answer.headers].filter(([name]) => !HOP_BY_HOP.has(name))
    response.writeHead(answer.status, Object.fromEntries(received)).end(content)
  }
}

function hasNonce(proof: string | readonly string[] | undefined): boolean {
  const [, payload = ''] = String(proof).split('.')
  return Buffer.from(payload, 'base64url').toString().includes(NONCE)
}

function refuse(
  response: ServerResponse,
  status: number,
  error: string,
  headers: Readonly<Record<string, string>>,
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify({ error, message: 'refused by the test', requestId: 'front' }))
}
