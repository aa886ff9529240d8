import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { reasonOf, systemClock } from '@plat/core'
import { CommandError } from '../shared/output.ts'
import { WrongStateError } from './provider.ts'

/** Path of the redirect URI, which the client at the provider registers. */
const CALLBACK = '/callback'
/** Longest request line and headers of a redirect, in bytes. */
const MAX_HEADER_BYTES = 32 * 1024

/** A listener for one redirect on the loopback interface (RFC 8252, section 7.3). */
export interface RedirectListener {
  readonly redirectURL: string
  /**
   * Returns the result of the first redirect that `redeem` accepts. Requests of other local programs do not end the wait.
   * @throws the error of `redeem`, unless it is WrongStateError; CommandError if no redirect comes in time
   */
  wait<T>(redeem: (parameters: URLSearchParams) => Promise<T>, timeoutMs: number): Promise<T>
  close(): void
}

/** @throws CommandError if the port is in use */
export async function listenForRedirect(port: number): Promise<RedirectListener> {
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening').catch((error: unknown) => {
    throw new CommandError(
      `no redirect can be received on port ${port}: ${reasonOf(error)}; choose another one with -port`,
    )
  })
  const address = server.address()
  const origin = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : port}`
  return {
    redirectURL: `${origin}${CALLBACK}`,
    wait: (redeem, timeoutMs) =>
      new Promise((resolve, reject) => {
        const late = new CommandError('no login within five minutes; start again, or use -device')
        const cancel = systemClock.after(timeoutMs, () => reject(late))
        server.on('request', async (request, response) => {
          const target = request.url ?? '/'
          const url = URL.canParse(target, origin) ? new URL(target, origin) : null
          if (request.method !== 'GET' || url?.pathname !== CALLBACK) return send(response, 404, 'Not found.')
          try {
            const result = await redeem(url.searchParams)
            send(response, 200, 'You are logged in. You may close this window.')
            resolve(result)
          } catch (error) {
            if (error instanceof WrongStateError)
              return send(response, 400, 'This is not the login that plat waits for.')
            send(response, 400, 'The login failed. The terminal says why.')
            reject(error)
          }
          cancel()
        })
      }),
    close() {
      server.close()
      server.closeIdleConnections()
    },
  }
}

/** The page loads nothing, and its address, which contains the code, is sent nowhere. */
function send(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'",
    'referrer-policy': 'no-referrer',
    connection: 'close',
  })
  response.end(`${text}\n`)
}
