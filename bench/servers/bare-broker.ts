import { createPrivateKey, createPublicKey, randomUUID, sign, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { bodyOf, sendJson, serve } from './body.ts'

/** The floor of the broker: node:http, one JSON parse, one Ed25519 operation, one JSON answer. The key's path is the one argument. */
const [keyPath] = process.argv.slice(2)
if (keyPath === undefined) throw new Error('usage: bare-broker.ts <key.pem>')
const key = createPrivateKey(readFileSync(keyPath))
const publicKey = createPublicKey(key)
const head = encode({ alg: 'EdDSA', kid: 'bench' })

serve(async (request, response) => {
  const body: unknown = JSON.parse((await bodyOf(request)).toString())
  if (request.url === '/v1/token') sendJson(response, mint(body))
  else sendJson(response, check(body))
})

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function mint(asked: unknown): string {
  const now = Math.floor(Date.now() / 1000)
  const jti = randomUUID()
  const claims = { ...Object(asked), iss: 'bare', aud: 'plat-gateway', iat: now, nbf: now, exp: now + 900, jti }
  const input = `${head}.${encode(claims)}`
  const token = `${input}.${sign(null, Buffer.from(input), key).toString('base64url')}`
  return JSON.stringify({ token, expiresAt: new Date((now + 900) * 1000).toISOString(), jti, tokenType: 'Bearer' })
}

function check(asked: unknown): string {
  const token = typeof asked === 'object' && asked !== null && 'token' in asked ? String(asked.token) : ''
  const cut = token.lastIndexOf('.')
  const valid = verify(
    null,
    Buffer.from(token.slice(0, cut)),
    publicKey,
    Buffer.from(token.slice(cut + 1), 'base64url'),
  )
  const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  return JSON.stringify({ valid, claims })
}
