import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { createServer } from 'node:http'
import { after, test } from 'node:test'
import { listening } from '@plat/testkit/local'
import { gcpIdentityCheck } from './gcp-identity.ts'
import { jwkOf, signJwt } from './testing/jwt.ts'
import { type Attempt, context, NONCE, proofCheckSuite, proofOf, testParts } from './testing/suite.ts'

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey

let up = true
const server = createServer((_request, response) => {
  const keys = [
    { ...jwkOf(privateKey), kid: 'g1', use: 'sig', alg: 'RS256' },
    { ...jwkOf(small), kid: 'small', use: 'sig', alg: 'RS256' },
    { ...jwkOf(privateKey), kid: 'other-alg', use: 'sig', alg: 'RS512' },
    { ...privateKey.export({ format: 'jwk' }), kid: 'private', use: 'sig', alg: 'RS256' },
  ]
  response.writeHead(up ? 200 : 500).end(JSON.stringify({ keys }))
})
const port = await listening(server)
after(() => server.close().closeAllConnections())
const keys = `http://127.0.0.1:${port}/certs`

const engine = {
  project_id: 'acme-prod',
  project_number: 123456789012,
  zone: 'europe-west1-b',
  instance_id: '4567890123456789',
  instance_name: 'runner-1',
  instance_creation_timestamp: 1700000000,
}

interface Change {
  readonly claims?: object
  readonly header?: object
  readonly key?: KeyObject
  readonly projects?: readonly string[]
}

function attempt({ claims = {}, header = {}, key = privateKey, projects = ['acme-prod=def*'] }: Change = {}): Attempt {
  const parts = testParts()
  const settings = { keys, issuer: 'https://accounts.google.com', audience: 'plat-identity', projects }
  const check = gcpIdentityCheck(settings, parts)
  const now = Math.floor(parts.clock.now() / 1000)
  const body = {
    iss: 'https://accounts.google.com',
    aud: `plat-identity/${NONCE}`,
    azp: '1',
    sub: '1',
    iat: now,
    exp: now + 3600,
    google: { compute_engine: engine },
    ...claims,
  }
  const token = signJwt({ alg: 'RS256', kid: 'g1', typ: 'JWT', ...header }, body, key)
  return { check, proof: proofOf('gcp-identity', { token, nonce: NONCE }) }
}

const refused = (reason: RegExp, change: Change) => ({ reason, ask: () => attempt(change) })

proofCheckSuite({
  name: 'gcp-identity',
  substrate: {
    check: 'gcp-identity',
    attestation: 'identity-token',
    platform: 'gcp',
    workload: 'projects/acme-prod/zones/europe-west1-b/instances/4567890123456789',
  },
  accepted: () => attempt(),
  async replayed() {
    const first = attempt()
    return [first, { ...first, proof: { ...first.proof, nonce: 'ANOTHERNONCEOFTHEBROKERSTHATISNEW' } }]
  },
  tampered() {
    const { check, proof } = attempt()
    const [head, , tail] = proof.token?.split('.') ?? []
    const [, body] = attempt({ claims: { azp: '2' } }).proof.token?.split('.') ?? []
    return { check, proof: { ...proof, token: [head, body, tail].join('.') } }
  },
  wrongAnchor: () => attempt({ key: stranger }),
  expired: () => attempt({ claims: { exp: 1_700_000_000 } }),
  unreachable() {
    up = false
    const requested = attempt()
    const verify: Attempt['check']['verify'] = async (...given) => {
      const verdict = await requested.check.verify(...given)
      up = true
      return verdict
    }
    return { ...requested, check: { ...requested.check, verify } }
  },
  refused: {
    'a token under a key that is for another algorithm': refused(/signature/, { header: { kid: 'other-alg' } }),
    'a token under a key whose secret is in the key set': refused(/no key/, { header: { kid: 'private' } }),
    'a token of another issuer': refused(/issuer/, { claims: { iss: 'https://evil.example' } }),
    'a token without the nonce': refused(/audience/, { claims: { aud: 'plat-identity' } }),
    'a token that lives for a day': refused(/longer/, { claims: { exp: 1_767_225_600 + 86_400 } }),
    'a token in the short format': refused(/full/, { claims: { google: undefined } }),
    'an instance without a number': refused(/no instance/, {
      claims: { google: { compute_engine: { ...engine, instance_id: 1 } } },
    }),
    'a project that is not listed': refused(/project/, { projects: ['another'] }),
    'a project of other namespaces': refused(/project/, { projects: ['acme-prod=prod-*'] }),
    'a key below 2,048 bits': refused(/signature/, { key: small, header: { kid: 'small' } }),
    'an unknown key': refused(/no key/, { header: { kid: 'g2' } }),
    'another algorithm': refused(/algorithm/, { header: { alg: 'PS256' } }),
    'an HMAC': refused(/algorithm/, { header: { alg: 'HS256' } }),
  },
})

test('gcp-identity: without a project every proof would fail, so it does not start', () => {
  assert.throws(() => attempt({ projects: [] }), /-gcp-identity-projects: name at least one/)
  assert.throws(() => attempt({ projects: ['=x'] }), /-gcp-identity-projects =x/)
})

test('gcp-identity: keys that were read serve on while their origin is down, for an hour', async () => {
  // Shows D1.proof.check.gcp-identity.
  const parts = testParts()
  const settings = { keys, issuer: 'https://accounts.google.com', audience: 'plat-identity', projects: ['acme-prod'] }
  const check = gcpIdentityCheck(settings, parts)
  const ask = async () => {
    const now = Math.floor(parts.clock.now() / 1000)
    const claims = {
      iss: settings.issuer,
      aud: `plat-identity/${NONCE}`,
      exp: now + 60,
      google: { compute_engine: engine },
    }
    const token = signJwt({ alg: 'RS256', kid: 'g1' }, claims, privateKey)
    return (await check.verify(proofOf('gcp-identity', { token, nonce: NONCE }), context)).kind
  }
  assert.equal(await ask(), 'established')
  up = false
  try {
    await parts.clock.advance(59 * 60 * 1000)
    assert.equal(await ask(), 'established')
    await parts.clock.advance(2 * 60 * 1000)
    assert.equal(await ask(), 'unreachable')
  } finally {
    up = true
  }
  await parts.clock.advance(11_000)
  assert.equal(await ask(), 'established')
})
