import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RefusalError } from '@plat/http/endpoints'
import { ephemeralSigner } from '@plat/keys'
import { decodeMintRequest } from './request.ts'

const base = { namespace: 'default', agent: 'assistant', session: 's1' }

function refusal(body: string | object): string {
  try {
    decodeMintRequest(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)))
    return 'accepted'
  } catch (error) {
    assert.ok(error instanceof RefusalError, String(error))
    assert.equal(error.status, 400)
    return error.message
  }
}

test('a full request is decoded unchanged', () => {
  const full = {
    ...base,
    user: 'ada lovelace',
    scopes: ['tools:notes', 'agents:ns/b'],
    tier: 'tier-1',
    ttlSeconds: 60,
    audience: 'elsewhere',
    groups: ['a', 'b'],
    principalVerified: 'idToken',
    parentSession: 's0',
    forkRoot: 's0',
    inheritedTaints: ['untrusted-input'],
    forkedFrom: ['planner/s0', 'first/root'],
    dpopJkt: ephemeralSigner().kid,
  }
  assert.deepEqual(decodeMintRequest(Buffer.from(JSON.stringify(full))), { ...full, proof: null })
})

test('forkedFrom is a list of at most 16 names of agent and session', () => {
  for (const entry of ['s0', 'a/b/c', '/s0', 'a/', 'a/..', 'a b/c', '']) {
    assert.match(refusal({ ...base, forkedFrom: [entry] }), /^invalid forkedFrom/, entry)
  }
  const many = Array.from({ length: 17 }, (_, index) => `a/s${index}`)
  assert.equal(refusal({ ...base, forkedFrom: many }), 'forkedFrom: at most 16 entries')
})

test('absent members have their documented defaults', () => {
  const request = decodeMintRequest(Buffer.from(JSON.stringify({ ...base, audience: '', ttlSeconds: 0 })))
  assert.deepEqual([request.ttlSeconds, request.audience, request.scopes, request.user], [0, null, [], null])
})

test('JSON that is not strict is invalid JSON', () => {
  // Shows D1.mint.unknownFieldRejected, D1.error.token.400.invalidJSON.
  const text = JSON.stringify(base)
  const bad = ['', '{', '[]', 'null', '"x"', `${text}x`, `\ufeff${text}`, text.replace('{', '{"agent":"b",')]
  for (const body of [...bad, text.replace('{', '{"\\u0061gent":"b",'), `${'['.repeat(100_000)}`]) {
    assert.match(refusal(body), /^invalid JSON/, body.slice(0, 40))
  }
  assert.equal(refusal({ ...base, act: { sub: 'user:root' } }), 'invalid JSON: unknown field "act"')
})

test('names that is not valid in a SPIFFE ID are refused', () => {
  for (const field of ['namespace', 'agent', 'session']) {
    assert.equal(refusal({ ...base, [field]: undefined }), `${field} is required`)
    assert.equal(refusal({ ...base, [field]: '' }), `${field} is required`)
    for (const name of ['a/b', '..', '.', 'a%2e', 'a b', 'ａ', 'a\0', 'a\n', 'х', 'a?b', 'a#b']) {
      assert.match(refusal({ ...base, [field]: name }), new RegExp(`^invalid ${field}`), name)
    }
  }
})

test('an entry with white space inside would become two and is refused', () => {
  // Shows D1.error.token.400.invalidScope.
  for (const entry of ['a b', 'a\tb', 'a\nb', 'a\u00a0b', 'a\u2028b', ' a', '', 'a\u0000', 'a\u0085']) {
    assert.equal(refusal({ ...base, scopes: [entry] }), 'invalid scope', JSON.stringify(entry))
    assert.match(refusal({ ...base, groups: [entry] }), /^invalid groups/, JSON.stringify(entry))
    assert.match(refusal({ ...base, inheritedTaints: [entry] }), /^invalid inheritedTaints/, JSON.stringify(entry))
  }
  assert.equal(refusal({ ...base, scopes: ['ü'] }), 'invalid scope')
  assert.equal(refusal({ ...base, scopes: ['x'.repeat(257)] }), 'invalid scope')
  assert.equal(refusal({ ...base, scopes: ['x'.repeat(256)] }), 'accepted')
})

test('32 groups pass and 33 do not', () => {
  // Shows D1.mint.groups.max, D1.limit.groups.
  const groups = (count: number) => Array.from({ length: count }, (_, i) => `g${i}`)
  assert.equal(refusal({ ...base, groups: groups(32) }), 'accepted')
  assert.equal(refusal({ ...base, groups: groups(33) }), 'groups: at most 32 entries')
})

test('lifetimes are whole seconds from 0', () => {
  // Shows D1.mint.ttlSeconds.negative, D1.error.token.400.ttlSeconds.
  assert.equal(refusal({ ...base, ttlSeconds: -1 }), 'ttlSeconds must be >= 0')
  const text = JSON.stringify(base)
  for (const value of ['null', '1.5', '"60"', '1e400', '9007199254740993', 'true', '[60]']) {
    const body = text.replace('{', `{"ttlSeconds":${value},`)
    assert.equal(refusal(body), 'invalid JSON: ttlSeconds must be an integer', value)
  }
})

test('words of a closed set and thumbprints are checked to the letter', () => {
  // Shows D1.error.token.400.invalidPrincipalVerified, D1.error.token.400.badDpopJkt.
  for (const word of ['', 'IDTOKEN', 'guess']) {
    assert.equal(refusal({ ...base, principalVerified: word }), 'invalid principalVerified')
  }
  const jkt = ephemeralSigner().kid
  // The last character of 43 carries two unused bits: setting one gives the same bytes another text.
  const unused = jkt.slice(0, 42) + String.fromCharCode(jkt.charCodeAt(42) + 1)
  for (const bad of ['', 'x', `${jkt}=`, `${jkt} `, unused, jkt.slice(1), `${jkt.slice(0, 42)}+`]) {
    assert.equal(refusal({ ...base, dpopJkt: bad }), 'bad dpopJkt', bad)
  }
  for (const tier of ['', 'Tier-0', '-x', 'x'.repeat(64)]) assert.equal(refusal({ ...base, tier }), 'invalid tier')
})

test('a value of another type names its field', () => {
  for (const field of ['namespace', 'user', 'tier', 'audience', 'principalVerified', 'dpopJkt', 'forkRoot']) {
    for (const value of [null, 1, {}, []]) {
      assert.equal(refusal({ ...base, [field]: value }), `invalid JSON: ${field} must be a string`)
    }
  }
  for (const field of ['scopes', 'groups', 'inheritedTaints']) {
    for (const value of [null, 'a', [1], {}]) {
      assert.equal(refusal({ ...base, [field]: value }), `invalid JSON: ${field} must be a list of strings`)
    }
  }
  assert.match(refusal(JSON.stringify({ ...base, user: 'x' }).replace('"x"', '"\\ud800"')), /^invalid JSON: user/)
})

test('a proof has its documented fields and names a check', () => {
  // Shows D1.proof.check, D1.proof.sandbox, D1.proof.nonce, D1.proof.token, D1.proof.document, D1.proof.signature,
  // D1.proof.format, D1.proof.x5c, D1.proof.evidence.
  const full = {
    check: 'any',
    sandbox: 's',
    nonce: 'n',
    token: 't',
    document: 'd',
    signature: 'g',
    format: 'f',
    x5c: ['x'],
    evidence: { quote: 'q' },
  }
  assert.deepEqual(decodeMintRequest(Buffer.from(JSON.stringify({ ...base, proof: full }))).proof, full)
  assert.match(refusal({ ...base, proof: {} }), /^unknown proof check/)
  assert.match(refusal({ ...base, proof: { check: '' } }), /^unknown proof check/)
  assert.equal(refusal({ ...base, proof: null }), 'invalid JSON: proof must be an object')
  assert.equal(refusal({ ...base, proof: { check: 1 } }), 'invalid JSON: proof.check must be a string')
  assert.equal(refusal({ ...base, proof: { check: 'a', extra: 1 } }), 'invalid JSON: unknown field "proof.extra"')
  assert.match(refusal({ ...base, proof: { check: 'a', x5c: Array(11).fill('x') } }), /at most 10/)
})

test('the documented shapes of scopes and the shipped tiers are taken', () => {
  // Shows D1.scope.tools, D1.scope.models, D1.scope.tier-0, D1.scope.tier-1, D1.scope.tier-2.
  const scopes = ['tools:notes', 'models:team.assistant', 'agents:helper']
  for (const tier of ['tier-0', 'tier-1', 'tier-2']) {
    const request = decodeMintRequest(Buffer.from(JSON.stringify({ ...base, scopes, tier })))
    assert.deepEqual([request.scopes, request.tier], [scopes, tier])
  }
})
