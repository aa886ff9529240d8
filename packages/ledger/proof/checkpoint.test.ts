import assert from 'node:assert/strict'
import { createSecretKey, generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ephemeralSigner, type Signer, signerOf } from '@plat/keys'
import { appendCheckpoint, fillLedger, ledgerLines, writeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { parseJws } from '@plat/tokens'
import { lineOf } from '../testing/line.ts'
import type { Rec } from '../types.ts'
import { verifyLedger } from '../verify.ts'
import { readCheckpointRecord, signCheckpoint } from './checkpoint.ts'
import { judgeCheckpoint } from './trust.ts'

const folder = tempFolder()

let files = 0
async function ledgerOf(records: number): Promise<string> {
  const path = join(folder, `ledger-${files++}.jsonl`)
  await fillLedger(path, records)
  return path
}

function keyFile(...signers: readonly Signer[]): string {
  const path = join(folder, `keys-${files++}.json`)
  writeFileSync(path, JSON.stringify({ keys: signers.map(({ publicJwk }) => publicJwk) }))
  return path
}

const hmacKey = createSecretKey(Buffer.from('a key of the test that no verifier knows'))
const signer = ephemeralSigner()

test('long signatures are stored whole: RSA with 4096 bits, and ML-DSA beside Ed25519', async () => {
  const rsa = signerOf(generateKeyPairSync('rsa', { modulusLength: 4096 }).privateKey, 'test')
  const pq = ephemeralSigner('ML-DSA-87')
  for (const [keys, trusted] of [
    [{ signer: rsa, pq: null, hmacKey: null }, [rsa]],
    [{ signer, pq, hmacKey: null }, [signer, pq]],
  ] as const) {
    const path = await ledgerOf(20)
    await appendCheckpoint(path, keys)
    const found = await verifyLedger(path, { key: keyFile(...trusted), strict: true })
    assert.equal(found.exitCode, 0, found.message)
    assert.deepEqual(found.checkpoints, { found: 1, signed: 1 })
  }
})

test('both signatures of a hybrid checkpoint cover the same statement, and both are required', async () => {
  // Shows D3.audit.auditCheckpointPQKey.
  const pq = ephemeralSigner('ML-DSA-65')
  const path = await ledgerOf(20)
  const rec = await appendCheckpoint(path, { signer, pq, hmacKey: null })
  const [one, two] = [parseJws(String(rec.jws)), parseJws(String(rec.pq))]
  assert.ok('payload' in one && 'payload' in two)
  assert.deepEqual(one.payload, two.payload)
  assert.deepEqual([one.header.alg, two.header.alg], ['EdDSA', 'ML-DSA-65'])
  const other = ephemeralSigner('ML-DSA-65')
  for (const [keys, code] of [
    [[signer], 0],
    [[pq], 0],
    [[signer, pq], 0],
    [[signer, other], 3],
    [[ephemeralSigner(), pq], 3],
  ] as const) {
    assert.equal((await verifyLedger(path, { key: keyFile(...keys) })).exitCode, code)
  }
})

test('a removed second signature is detected, with and without trust in its key', async () => {
  const pq = ephemeralSigner('ML-DSA-44')
  const path = await ledgerOf(20)
  await appendCheckpoint(path, { signer, pq, hmacKey: null })
  const lines = ledgerLines(path)
  const { pq: _taken, ...rest } = JSON.parse(lines.at(-1) ?? '').rec
  const { prev, seq } = JSON.parse(lines.at(-1) ?? '')
  writeLines(path, [...lines.slice(0, -1), lineOf(prev, JSON.stringify(rest), seq).text.trimEnd()])
  const found = await verifyLedger(path, { key: keyFile(signer) })
  assert.equal(found.exitCode, 3)
  assert.match(found.message, /do not say the same/)
})

test('with a trusted ML-DSA key, a checkpoint with one signature proves nothing', async () => {
  const path = await ledgerOf(20)
  await appendCheckpoint(path, signer)
  const found = await verifyLedger(path, { key: keyFile(signer, ephemeralSigner('ML-DSA-44')) })
  assert.equal(found.exitCode, 4)
  assert.equal(found.verdict, 'unproven')
})

test('an HMAC checkpoint proves to holders of the key, and counts as forged under another key', async () => {
  const path = await ledgerOf(20)
  await appendCheckpoint(path, { signer: null, pq: null, hmacKey })
  assert.equal((await verifyLedger(path, { hmacKey, strict: true })).exitCode, 0)
  assert.equal((await verifyLedger(path)).exitCode, 0)
  const other = await verifyLedger(path, { hmacKey: createSecretKey(Buffer.from('another')) })
  assert.equal(other.exitCode, 3)
  assert.match(other.message, /not of the given HMAC key/)
  // Nothing contradicts a public key, and nothing proves by it.
  assert.equal((await verifyLedger(path, { key: keyFile(signer) })).exitCode, 4)
})

test('with an ML-DSA key among the trusted ones, the HMAC key alone proves nothing', async () => {
  const path = await ledgerOf(5)
  await appendCheckpoint(path, { signer: null, pq: null, hmacKey })
  const key = keyFile(signer, ephemeralSigner('ML-DSA-44'))
  assert.equal((await verifyLedger(path, { key, hmacKey })).exitCode, 4)
})

test('a statement that names another algorithm than that of the key is refused', async () => {
  // The public key's bytes as an HMAC key: the attack on verifiers that let a statement choose its algorithm.
  const forger = createSecretKey(signer.publicKey.key.export({ format: 'der', type: 'spki' }))
  const path = await ledgerOf(5)
  const rec = await appendCheckpoint(path, { signer: null, pq: null, hmacKey: forger })
  const forged = readCheckpointRecord(rec)
  assert.ok(typeof forged !== 'string')
  const trust = { keys: [signer.publicKey], hmacKey: null }
  assert.match(String(judgeCheckpoint({ ...forged, jws: forged.hmac }, trust)), /not signed by the given key/)
  assert.equal(judgeCheckpoint(forged, trust), false)
  const checkpoint = join(folder, 'forged')
  writeFileSync(checkpoint, String(rec.hmac))
  await assert.rejects(verifyLedger(path, { key: keyFile(signer), checkpoint }), /not signed by the given key/)
})

test('both the jws and the note must be signed: neither replaces the other', async () => {
  const [path, other] = [await ledgerOf(5), ephemeralSigner()]
  const bodied = await appendCheckpoint(path, signer)
  const lines = ledgerLines(path)
  const { prev, seq } = JSON.parse(lines.at(-1) ?? '')
  const theirs = await signCheckpoint({ signer: other, pq: null, hmacKey: null }, bodyOf(bodied, lines))
  for (const changed of [{ note: theirs.note }, { jws: theirs.jws }]) {
    const rec = { at: 'x', ...bodied, ...changed }
    writeLines(path, [...lines.slice(0, -1), lineOf(prev, JSON.stringify(rec), seq).text.trimEnd()])
    const found = await verifyLedger(path, { key: keyFile(signer) })
    assert.equal(found.exitCode, 3)
    assert.match(found.message, /not signed by the given key/)
  }
})

test('a note and a jws of one key with different content are not a checkpoint', async () => {
  const path = await ledgerOf(5)
  const rec = await appendCheckpoint(path, signer)
  const body = bodyOf(rec, ledgerLines(path))
  const others = [{ root: 'a'.repeat(64) }, { size: body.size - 1, upTo: body.upTo - 1 }, { ledgerId: 'another' }]
  for (const other of others) {
    const { note } = await signCheckpoint({ signer, pq: null, hmacKey: null }, { ...body, ...other })
    assert.match(String(readCheckpointRecord({ ...rec, note })), /do not say the same/)
  }
})

test('a statement that names another algorithm than its key has is not signed', async () => {
  const path = await ledgerOf(5)
  const rec = await appendCheckpoint(path, signer)
  const [, claims = ''] = String(rec.jws).split('.')
  const header = Buffer.from(JSON.stringify({ alg: 'ES256', kid: signer.kid, typ: 'plat-checkpoint+jws' }))
  const input = `${header.toString('base64url')}.${claims}`
  const signature = Buffer.from(await signer.sign(Buffer.from(input))).toString('base64url')
  const forged = readCheckpointRecord({ ...rec, jws: `${input}.${signature}` })
  assert.ok(typeof forged !== 'string', String(forged))
  const trust = { keys: [signer.publicKey], hmacKey: null }
  assert.match(String(judgeCheckpoint(forged, trust)), /not signed by the given key/)
})

function bodyOf({ upTo, head, size, root }: Rec, lines: readonly string[]) {
  const { ledgerId } = JSON.parse(lines[0] ?? '').rec
  return { ledgerId, upTo: Number(upTo), head: String(head), size: Number(size), root: String(root) }
}

test('each of several kept checkpoints is verified, and the largest gives the minimum length of the ledger', async () => {
  const path = await ledgerOf(20)
  await appendCheckpoint(path, signer)
  await fillLedger(path, 10)
  await appendCheckpoint(path, signer)
  const lines = ledgerLines(path)
  const checkpoint = join(folder, 'kept')
  writeLines(
    checkpoint,
    lines.filter((line) => line.includes('"kind":"checkpoint"')),
  )
  const key = keyFile(signer)
  assert.equal((await verifyLedger(path, { key, checkpoint })).exitCode, 0)
  writeLines(path, lines.slice(0, 25))
  assert.equal((await verifyLedger(path, { key, checkpoint })).exitCode, 6)
  const other = await ledgerOf(50)
  assert.equal((await verifyLedger(other, { key, checkpoint })).exitCode, 5)
})
