import { createServer } from 'node:http'
import { ephemeralSigner, type LocalSigner } from '@plat/keys'
import { closed, listening } from '@plat/testkit/local'
import { signJws } from '@plat/tokens'

/** An API server that only reviews tokens, those it has issued. */
export class ReviewServer {
  readonly #signer: LocalSigner = ephemeralSigner()
  readonly #issued = new Map<string, { readonly username: string; readonly audiences: readonly string[] }>()
  readonly #server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    this.reviews++
    const { spec } = JSON.parse(Buffer.concat(chunks).toString())
    const known =
      request.url === '/apis/authentication.k8s.io/v1/tokenreviews' ? this.#issued.get(spec.token) : undefined
    const audiences = known?.audiences.filter((name) => spec.audiences.includes(name)) ?? []
    const isGood = known !== undefined && audiences.length > 0
    const status = isGood ? { authenticated: true, user: { username: known.username }, audiences } : { error: 'no' }
    response.writeHead(this.isAway ? 500 : 201, { 'content-type': 'application/json' })
    response.end(JSON.stringify(this.isAway ? { kind: 'Status' } : { kind: 'TokenReview', status }))
  })
  /** Number of reviews so far. */
  reviews = 0
  isAway = false
  /** A kubeconfig for this server. */
  kubeconfig = ''

  async start(): Promise<void> {
    const server = `http://127.0.0.1:${await listening(this.#server)}`
    this.kubeconfig = JSON.stringify({
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      clusters: [{ name: 'test', cluster: { server } }],
      users: [{ name: 'test', user: { token: 'of-the-gateway' } }],
    })
  }

  /** Issues a token for the service account `<namespace>:<name>`. */
  token(account: string, audience = 'plat-sandbox-usage'): string {
    const username = `system:serviceaccount:${account}`
    const claims = { sub: username, aud: [audience], jti: String(this.#issued.size) }
    const token = String(signJws(this.#signer, {}, claims))
    this.#issued.set(token, { username, audiences: [audience] })
    return token
  }

  /** A token that was not issued, with the claims of a reporter. */
  forged(account: string): string {
    return String(signJws(ephemeralSigner(), {}, { sub: `system:serviceaccount:${account}` }))
  }

  async stop(): Promise<void> {
    await closed(this.#server)
  }
}
