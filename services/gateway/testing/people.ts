import { generateKeyPairSync } from 'node:crypto'
import { createServer as createPlainServer, type RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { TestContext } from 'node:test'
import { systemClock } from '@plat/core'
import { type Signer, signerOf } from '@plat/keys'
import { listening } from '@plat/testkit/local'
import { signJws } from '@plat/tokens'

/** Audience of the admin API in these tests. */
export const AUDIENCE = 'plat-admin'
export const es256 = () => signerOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, 'test key')
export const rs256 = () => signerOf(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey, 'test key')

/** An identity provider on loopback: its metadata, its keys, and the requests that it received. */
export async function provider(t: TestContext, tls?: { readonly key: string; readonly cert: string }) {
  const state: { signer: Signer; issuer: string } = { signer: es256(), issuer: '' }
  const requests: string[] = []
  const answer: RequestListener = ({ url = '' }, response) => {
    requests.push(url)
    const keys = { keys: [{ ...state.signer.publicJwk, kid: state.signer.kid, use: 'sig' }] }
    const documents: Record<string, object> = {
      '/.well-known/openid-configuration': { issuer: state.issuer, jwks_uri: `${state.issuer}/keys` },
      '/keys': keys,
      '/pinned': keys,
    }
    const document = documents[url]
    response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(document ?? {}))
  }
  const server = tls === undefined ? createPlainServer(answer) : createServer(tls, answer)
  const port = await listening(server)
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  state.issuer = tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`
  const now = () => Math.floor(systemClock.now() / 1000)
  const token = (more: object = {}, signer = state.signer) =>
    signJws(
      signer,
      { typ: 'JWT' },
      {
        iss: state.issuer,
        aud: AUDIENCE,
        sub: 'u-1',
        preferred_username: 'ada',
        iat: now(),
        exp: now() + 300,
        ...more,
      },
    )
  return { state, requests, token, now }
}

export type Provider = Awaited<ReturnType<typeof provider>>
