import { createPrivateKey, createPublicKey, randomUUID, sign, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { bodyOf, sendJson, serve } from './body.ts'

/** The floor of the broker: node:http, one parse, one Ed25519 operation (two for an exchange), one JSON answer. The key's path is the one argument. */
const [keyPath] = process.argv.slice(2)
if (keyPath === undefined) throw new Error('usage: bare-broker.ts <key.pem>')
const key = createPrivateKey(readFileSync(keyPath))
const publicKey = createPublicKey(key)
const head = encode({ alg: 'EdDSA', kid: 'bench' })

serve(async (request, response) => {
  const text = (await bodyOf(request)).toString()
  if (request.url === '/v1/exchange') {
    sendJson(response, exchange(new URLSearchParams(text)))
    return
  }
  const body: unknown = JSON.parse(text)
  if (request.url === '/v1/token') sendJson(response, mint(body))
  else sendJson(response, check(body))
})

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function issue(claims: object): string {
  const input = `${head}.${encode(claims)}`
  return `${input}.${sign(null, Buffer.from(input), key).toString('base64url')}`
}

function mint(request: unknown): string {
  const now = Math.floor(Date.now() / 1000)
  const jti = randomUUID()
  const token = issue({ ...Object(request), iss: 'bare', aud: 'plat-gateway', iat: now, nbf: now, exp: now + 900, jti })
  return JSON.stringify({ token, expiresAt: new Date((now + 900) * 1000).toISOString(), jti, tokenType: 'Bearer' })
}

function check(request: unknown): string {
  return JSON.stringify(
    verified(typeof request === 'object' && request !== null && 'token' in request ? String(request.token) : ''),
  )
}

function exchange(form: URLSearchParams): string {
  const { valid, claims } = verified(form.get('subject_token') ?? '')
  const now = Math.floor(Date.now() / 1000)
  const token = issue({ ...Object(claims), aud: form.get('audience'), iat: now, exp: now + 300, jti: randomUUID() })
  return JSON.stringify({ access_token: valid ? token : '', token_type: 'Bearer', expires_in: 300 })
}

function verified(token: string): { valid: boolean; claims: unknown } {
  const cut = token.lastIndexOf('.')
  const valid = verify(
    null,
    Buffer.from(token.slice(0, cut)),
    publicKey,
    Buffer.from(token.slice(cut + 1), 'base64url'),
  )
  const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  return { valid, claims }
}
