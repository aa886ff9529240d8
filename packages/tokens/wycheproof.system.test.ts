import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { before, test } from 'node:test'
import { isObject, type JsonObject } from '@plat/core'
import { type AlgorithmName, type PublicKey, publicKeyOf, readPublicJwk } from '@plat/keys'
import { isFault, parseCompact } from './index.ts'

// Project Wycheproof (Apache-2.0): known attacks on signatures, as a Go module pinned by its checksum. Requires Go and, the first time, its module
// proxy.
const MODULE = 'github.com/c2sp/wycheproof@v0.0.0-20260902155932-3fa63dd0344a'
/** On the PATH. */
const GO = 'go'
const CHECKSUM = 'h1:pNbL2nztRsWfW/ispAwsvcDFxs9Id38uIsR2/Up5G2c='

let folder = ''

before(() => {
  const printed = execFileSync(GO, ['mod', 'download', '-json', MODULE], { cwd: os.tmpdir(), encoding: 'utf8' })
  const module: unknown = JSON.parse(printed)
  assert.ok(isObject(module) && typeof module.Dir === 'string')
  assert.equal(module.Sum, CHECKSUM)
  folder = path.join(module.Dir, 'testvectors_v1')
})

/** Yields every case of a file with its group. */
function* casesOf(file: string): Generator<{ readonly group: JsonObject; readonly vector: JsonObject }> {
  const document: unknown = JSON.parse(readFileSync(path.join(folder, file), 'utf8'))
  assert.ok(isObject(document) && Array.isArray(document.testGroups))
  for (const group of document.testGroups) {
    assert.ok(isObject(group) && Array.isArray(group.tests))
    for (const vector of group.tests) {
      assert.ok(isObject(vector))
      yield { group, vector }
    }
  }
}

function bytes(value: unknown): Buffer {
  return Buffer.from(String(value), 'hex')
}

/** Returns the key of a group in DER; null when it is not supported. */
function keyOf({ publicKeyDer }: JsonObject): PublicKey | null {
  try {
    return publicKeyOf(createPublicKey({ key: bytes(publicKeyDer), format: 'der', type: 'spki' }))
  } catch {
    return null
  }
}

/**
 * Checks signatures over bytes: the table of algorithms must agree with Wycheproof. Returns the number of cases. Inverted are two valid ones of each
 * ML-DSA file: they use a context, which RFC 9964 section 4 leaves empty.
 */
function judge(file: string, name: AlgorithmName): number {
  let count = 0
  for (const { group, vector } of casesOf(file)) {
    const { tcId, comment, ctx = '', msg, sig, result } = vector
    const key = keyOf(group)
    const held = key?.algorithm.name === name && key.algorithm.verify(bytes(msg), key.key, bytes(sig))
    assert.equal(held, ctx === '' && result === 'valid', `${file} ${tcId}: ${comment}`)
    count++
  }
  return count
}

test('every Ed25519, P-256 and ML-DSA signature of Wycheproof gets the expected result', () => {
  assert.equal(judge('ed25519_test.json', 'EdDSA'), 151)
  assert.equal(judge('ecdsa_secp256r1_sha256_p1363_test.json', 'ES256'), 262)
  assert.equal(judge('mldsa_44_verify_test.json', 'ML-DSA-44'), 180)
  assert.equal(judge('mldsa_65_verify_test.json', 'ML-DSA-65'), 210)
  assert.equal(judge('mldsa_87_verify_test.json', 'ML-DSA-87'), 241)
})

/** Verifies a JWS as tokens are verified: strict parsing, a key that determines its algorithm, and a header that must agree. */
function holds(key: PublicKey, text: unknown): boolean {
  const jws = typeof text === 'string' ? parseCompact(text) : null
  if (jws === null || isFault(jws)) return false
  return jws.header.alg === key.algorithm.name && key.algorithm.verify(jws.input, key.key, jws.signature)
}

/** The other cases do not apply: keys for HMAC, RSA-PSS, SHA-384, SHA-512 and P-521 are never loaded. */
const isOfOurAlgorithms = ({ public: key }: JsonObject) =>
  isObject(key) && (key.crv === 'P-256' || (key.kty === 'RSA' && (key.alg === 'RS256' || key.alg === undefined)))

test('every JWS of Wycheproof with a supported key gets the expected result', () => {
  let agreed = 0
  const left = new Map<string, number>()
  for (const { group, vector } of casesOf('json_web_signature_test.json')) {
    const { public: jwk, comment } = group
    const key = readPublicJwk(jwk)
    const where = `${comment} ${vector.tcId}: ${vector.comment}`
    if (isOfOurAlgorithms(group)) {
      assert.equal(key !== null && holds(key, vector.jws), vector.result === 'valid', where)
      agreed++
    } else {
      assert.equal(key, null, where)
      left.set(String(comment), (left.get(String(comment)) ?? 0) + 1)
    }
  }
  assert.equal(agreed, 276)
  assert.deepEqual(Object.fromEntries(left), {
    hs256: 17,
    rs384: 4,
    rs512: 4,
    ps256: 48,
    ps384: 5,
    ps512: 20,
    rfc7520: 4,
    rfc7520WithKeyOps: 2,
    base64: 21,
  })
})

/**
 * Excluded base64 cases: 367 and 370 are byte for byte the valid vector, and 372 and 373 count as valid with a character outside the alphabet, which
 * RFC 7515 section 2 does not allow.
 */
const NOT_AS_NAMED: ReadonlySet<unknown> = new Set([367, 370, 372, 373])

test('base64 that is not canonical is refused before a key is searched', () => {
  let count = 0
  for (const { group, vector } of casesOf('json_web_signature_test.json')) {
    const { tcId, comment, jws, result } = vector
    if (group.comment !== 'base64' || NOT_AS_NAMED.has(tcId)) continue
    const refused = typeof jws !== 'string' || isFault(parseCompact(jws))
    assert.equal(refused, result === 'invalid', `${tcId}: ${comment}`)
    count++
  }
  assert.equal(count, 17)
})
