import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { before, test } from 'node:test'
import { type Proof, verifyProof } from './verify.ts'

const KID = 'test-key'
let proof: Proof
let key: JsonWebKey

const sha = (...parts: readonly (string | Uint8Array)[]) => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
const leafOf = (line: string) => sha(Uint8Array.of(0), line)
const nodeOf = (left: Uint8Array, right: Uint8Array) => sha(Uint8Array.of(1), left, right)

function lineOf(seq: number, prev: string): string {
  const body = `"prev":"${prev}","rec":{"kind":"test","note":"\u202e${seq}"},"seq":${seq},"v":1}`
  return `{"hash":"${sha(`plat-ledger-v1\n${body}`).toString('hex')}",${body}`
}

async function signed(claims: object): Promise<string> {
  const { privateKey, publicKey } = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  key = { ...(await crypto.subtle.exportKey('jwk', publicKey)), ...{ kid: KID, alg: 'EdDSA', use: 'sig' } }
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part({ alg: 'EdDSA', kid: KID, typ: 'plat-checkpoint+jws' })}.${part(claims)}`
  return `${text}.${Buffer.from(await crypto.subtle.sign('Ed25519', privateKey, Buffer.from(text))).toString('base64url')}`
}

/** Record 4 of 5: its path has one hash, past two levels without a neighbour. */
before(async () => {
  const lines: string[] = []
  for (let seq = 0; seq < 5; seq++)
    lines.push(lineOf(seq, /"hash":"(\w+)"/.exec(lines.at(-1) ?? '')?.[1] ?? '0'.repeat(64)))
  const [a, b, c, d, e] = lines.map(leafOf)
  const [none] = [Buffer.alloc(0)]
  const left = nodeOf(nodeOf(a ?? none, b ?? none), nodeOf(c ?? none, d ?? none))
  const root = nodeOf(left, e ?? none).toString('hex')
  const jws = await signed({ root, size: 5, ledgerId: 'ledger' })
  proof = { seq: 4, line: lines[4] ?? '', inclusion: [left.toString('hex')], checkpoint: { jws, root: 'not signed' } }
})

const verdicts = async (changed: Partial<Proof>, keys: readonly JsonWebKey[] = [key]) =>
  (await verifyProof({ ...proof, ...changed }, keys)).map(({ isValid }) => isValid)

test('a record is proven by its hash, its path and the signed root', async () => {
  assert.deepEqual(await verdicts({}), [true, true, true])
})

test('a changed record, number, path, checkpoint or key is found, each by its step', async () => {
  const line = proof.line.replace('"test"', '"tesT"')
  assert.deepEqual(await verdicts({ line }), [false, false, true])
  assert.deepEqual(await verdicts({ seq: 3 }), [false, false, true])
  assert.deepEqual(await verdicts({ inclusion: [] }), [true, false, true])
  assert.deepEqual(await verdicts({ inclusion: ['00'.repeat(32)] }), [true, false, true])
  assert.deepEqual(await verdicts({ checkpoint: {} }), [true, false, false])
  assert.deepEqual(await verdicts({ checkpoint: { jws: 'a.b.c' } }), [true, false, false])
  const jws = String(Reflect.get(proof.checkpoint, 'jws')).replace(
    /\.[^.]+\./,
    `.${Buffer.from('{"root":"x","size":5}').toString('base64url')}.`,
  )
  assert.deepEqual(await verdicts({ checkpoint: { jws } }), [true, false, false])
  assert.deepEqual(await verdicts({}, []), [true, true, false])
  const { publicKey } = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  const other = { ...(await crypto.subtle.exportKey('jwk', publicKey)), kid: KID }
  assert.deepEqual(await verdicts({}, [other]), [true, true, false])
})
