import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { parseFlags } from '@plat/config'
import { thumbprint } from '@plat/keys'
import { tempFolder } from '@plat/testkit/local'
import { createChecks } from './checks.ts'
import { proofFlags } from './flags.ts'
import { sandboxCheck } from './sandbox.ts'
import { signJwt } from './testing/jwt.ts'
import { type Attempt, context, NONCE, proofCheckSuite, proofOf, testParts } from './testing/suite.ts'

const dir = tempFolder()
const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const stranger = generateKeyPairSync('ed25519').privateKey
const keys = path.join(dir, 'driver.pem')
writeFileSync(keys, publicKey.export({ format: 'pem', type: 'spki' }))
const { crv = '', kty = '', x = '' } = publicKey.export({ format: 'jwk' })
const kid = thumbprint({ crv, kty, x })

interface Change {
  readonly claims?: object
  readonly header?: object
  readonly key?: KeyObject
  readonly path?: string
  readonly sandbox?: string
}

function attempt({ claims = {}, header = {}, key = privateKey, path = keys, sandbox }: Change = {}): Attempt {
  const parts = testParts()
  const now = Math.floor(parts.clock.now() / 1000)
  const statement = {
    iss: 'boxes',
    aud: 'plat-identity',
    sub: 'box-7',
    exp: now + 60,
    nonce: NONCE,
    plat_ns: 'default',
    plat_agent: 'assistant',
    plat_session: 's1',
    isolation: 'kata',
    egress: 'none',
    digest: 'sha256:00',
    platform: 'boxes/2',
    workload: 'runner',
    jurisdiction: 'EU-DE',
    ...claims,
  }
  const token = signJwt({ alg: 'EdDSA', kid, typ: 'sandbox+jwt', ...header }, statement, key)
  const check = sandboxCheck({ driver: 'boxes', keys: path, audience: 'plat-identity' }, parts)
  return { check, proof: proofOf('boxes', { token, nonce: NONCE, sandbox: sandbox ?? null }) }
}

const refused = (reason: RegExp, change: Change) => ({ reason, ask: () => attempt(change) })

proofCheckSuite({
  name: 'sandbox driver',
  substrate: {
    check: 'boxes',
    sandbox: 'box-7',
    attestation: 'signed-statement',
    isolation: 'kata',
    egress: 'none',
    digest: 'sha256:00',
    platform: 'boxes/2',
    workload: 'runner',
    jurisdiction: 'EU-DE',
  },
  accepted: () => attempt({ sandbox: 'box-7' }),
  async replayed() {
    const first = attempt()
    return [first, { ...first, proof: { ...first.proof, nonce: 'ANOTHER' } }]
  },
  tampered() {
    const { check, proof } = attempt()
    const [head, , tail] = proof.token?.split('.') ?? []
    const [, body] = attempt({ claims: { isolation: 'tee' } }).proof.token?.split('.') ?? []
    return { check, proof: { ...proof, token: [head, body, tail].join('.') } }
  },
  wrongAnchor: () => attempt({ key: stranger }),
  expired: () => attempt({ claims: { exp: 1_700_000_000 } }),
  unreachable: () => attempt({ path: path.join(dir, 'missing.pem') }),
  refused: {
    'a statement of another driver': refused(/another driver/, { claims: { iss: 'others' } }),
    'a statement about another session': refused(/another session/, { claims: { plat_session: 's2' } }),
    'a statement about a session of another agent': refused(/another session/, { claims: { plat_agent: 'other' } }),
    'a statement about a session of another namespace': refused(/another session/, { claims: { plat_ns: 'prod' } }),
    'a statement about another sandbox': refused(/another sandbox/, { sandbox: 'box-8' }),
    'a statement without sandbox': refused(/no sandbox/, { claims: { sub: '' } }),
    'a statement that lives for an hour': refused(/longer/, { claims: { exp: 1_767_225_600 + 3600 } }),
    'a plain token of the same key': refused(/"typ"/, { header: { typ: 'JWT' } }),
    'a fact that is not a line': refused(/bad "egress"/, { claims: { egress: 'a\nb' } }),
  },
})

test('sandbox driver: the substrate contains only what the driver stated', async () => {
  // Shows D1.proof.check.sandboxDriver, D1.claim.plat_substrate.egress, D1.claim.plat_substrate.digest,
  // D1.claim.plat_substrate.platform, D1.claim.plat_substrate.workload, D1.claim.plat_substrate.jurisdiction.
  const stated = ['isolation', 'egress', 'digest', 'platform', 'workload', 'jurisdiction']
  for (const name of stated) {
    const others = Object.fromEntries(stated.map((other) => [other, other === name ? 'EU-DE' : undefined]))
    const { check, proof } = attempt({ claims: { ...others, unheard: 'x' } })
    const substrate = { check: 'boxes', sandbox: 'box-7', attestation: 'signed-statement', [name]: 'EU-DE' }
    assert.deepEqual(await check.verify(proof, context), { kind: 'established', substrate })
  }
})

test('flags that enable a check without its anchors, or no check at all, refuse to start and name the flag', async () => {
  // Shows D1.flag.identity-checks, D1.flag.sandbox-check.
  const start = async (...argv: readonly string[]) => {
    const parsed = parseFlags(proofFlags, argv)
    assert.ok(parsed.ok)
    return (await createChecks(parsed.values, testParts())).map(({ name }) => name)
  }
  assert.deepEqual(await start(), [])
  const all = ['-identity-checks', 'spiffe,kubernetes', '-spiffe-bundles', 'mesh.example=/x', '-sandbox-check', 'boxes']
  assert.deepEqual(await start(...all, '-sandbox-keys', `boxes=${keys}`), ['spiffe', 'kubernetes', 'boxes'])
  const wrong: readonly (readonly [RegExp, ...string[]])[] = [
    [/-identity-checks kubernets: unknown check, did you mean kubernetes/, '-identity-checks', 'kubernets'],
    [/-identity-checks __proto__: unknown/, '-identity-checks', '__proto__'],
    [/-spiffe-bundles: name at least one/, '-identity-checks', 'spiffe'],
    [/-spiffe-bundles Mesh: must be/, '-identity-checks', 'spiffe', '-spiffe-bundles', 'Mesh=/x'],
    [/-gcp-identity-projects: name at least one/, '-identity-checks', 'gcp-identity'],
    [/-kubernetes-api ftp:/, '-identity-checks', 'kubernetes', '-kubernetes-api', 'ftp://x'],
    [/-sandbox-keys: name the keys of boxes/, '-sandbox-check', 'boxes'],
    [/-sandbox-keys other: no driver/, '-sandbox-keys', 'other=/x'],
    [/-sandbox-check tee: is not a valid driver name/, '-sandbox-check', 'tee'],
    [/ENOENT/, '-sandbox-check', 'boxes', '-sandbox-keys', `boxes=${dir}/none`],
  ]
  for (const [reason, ...argv] of wrong) await assert.rejects(start(...argv), reason)
})
