import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { tempFolder } from '@plat/testkit/local'
import { isFault, signJws } from '@plat/tokens'
import { buildAuthority, NO_AUTHORITY, readAuthority, readLicense, standingOf } from './index.ts'

const signer = ephemeralSigner()
const authority = authorityOf(signer)
const DAY_S = 24 * 60 * 60
/** 2026-01-01T00:00:00Z, and a year later. */
const [BEGIN, END] = [1_767_225_600, 1_798_761_600]
const header = { typ: 'plat-license+jws' }
const claims = { jti: 'L-1', sub: 'Example Ltd', edition: 'enterprise', nbf: BEGIN, exp: END, graceDays: 14, nodes: 10 }

function authorityOf(one: ReturnType<typeof ephemeralSigner>) {
  return readAuthority(JSON.stringify(one.publicJwk), 'test')
}

const text = (more: object = {}, by = signer) => signJws(by, header, { ...claims, ...more })

/** State and days left at a time, in seconds. */
function at(seconds: number, more: object = {}): readonly unknown[] {
  const { state, daysLeft } = standingOf(readLicense(text(more), authority), seconds * 1000)
  return [state, daysLeft]
}

test('a licence is valid until its end, then in its grace, then expired, and no day is left from the end on', () => {
  assert.deepEqual(at(BEGIN - 1), ['invalid', null])
  assert.deepEqual(at(BEGIN), ['valid', 365])
  assert.deepEqual(at(END - DAY_S), ['valid', 1])
  assert.deepEqual(at(END - 1), ['valid', 0])
  assert.deepEqual(at(END), ['grace', -1])
  assert.deepEqual(at(END + 14 * DAY_S - 1), ['grace', -14])
  assert.deepEqual(at(END + 14 * DAY_S), ['expired', -14])
  assert.deepEqual(at(END, { graceDays: 0 }), ['expired', -1])
})

test('edition, holder and nodes are those of the licence, and without a valid one all is community without a limit', () => {
  const read = readLicense(`${text()}\n`, authority)
  const { edition, nodeLimit, license } = standingOf(read, BEGIN * 1000)
  assert.deepEqual([edition, nodeLimit, license?.holder, license?.id], ['enterprise', 10, 'Example Ltd', 'L-1'])
  assert.equal(standingOf(readLicense(text({ nodes: undefined }), authority), BEGIN * 1000).nodeLimit, 0)
  const early = standingOf(read, (BEGIN - 1) * 1000)
  assert.deepEqual([early.edition, early.nodeLimit, early.license], ['community', 0, null])
  assert.equal(early.reason, 'it begins on 2026-01-01T00:00:00Z')
})

/** Returns the problem of a licence. */
function wrong(what: string, keys = authority): string {
  const read = readLicense(what, keys)
  return isFault(read) ? read.message : 'nothing'
}

test('only a licence signed by a key of the authority is valid', () => {
  assert.equal(wrong(text()), 'nothing')
  assert.match(wrong(text({}, ephemeralSigner())), /its key is none of those/)
  assert.match(wrong(text(), authorityOf(ephemeralSigner())), /its key is none of those/)
  assert.match(wrong(text(), NO_AUTHORITY), /this build has no key/)
  assert.match(wrong(signJws(signer, { typ: 'JWT' }, claims)), /"typ" is not plat-license\+jws/)
  assert.match(wrong(signJws(signer, {}, claims)), /"typ"/)
  assert.match(wrong(signJws(signer, { ...header, alg: 'none' }, claims)), /signature/)
  const [head, , signature] = text().split('.')
  const [, richer] = text({ nodes: 0 }).split('.')
  assert.equal(wrong([head, richer, signature].join('.')), 'its signature is wrong')
  assert.match(wrong(''), /three segments/)
})

test('missing and out-of-range claims are named', () => {
  assert.match(wrong(text({ edition: undefined })), /"edition"/)
  assert.match(wrong(text({ edition: 'A b' })), /"edition"/)
  assert.match(wrong(text({ sub: 'two\nlines' })), /"sub"/)
  assert.match(wrong(text({ exp: BEGIN })), /"exp" is not after "nbf"/)
  assert.match(wrong(text({ nbf: undefined })), /"nbf"/)
  for (const graceDays of [-1, 367, 1.5, '14']) assert.match(wrong(text({ graceDays })), /"graceDays" .* 0 to 366/)
  assert.match(wrong(text({ nodes: 2e9 })), /"nodes"/)
  assert.equal(wrong(text({ later: { unknown: true } })), 'nothing')
})

test('a build trusts the public keys in it, and the sources have none', async () => {
  const file = join(tempFolder(), 'authority.pem')
  const pem = (one: typeof signer) => one.publicKey.key.export({ type: 'spki', format: 'pem' })
  writeFileSync(file, `${pem(signer)}${pem(ephemeralSigner())}`)
  const ours = await buildAuthority(file)
  assert.equal(ours.size, 2)
  assert.equal(wrong(text(), ours), 'nothing')
  writeFileSync(file, 'nothing')
  await assert.rejects(buildAuthority(file), /authority\.pem: holds no key/)
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const p256 = String(publicKey.export({ type: 'spki', format: 'pem' }))
  assert.throws(() => readAuthority(p256, 'a.pem'), /a\.pem: must hold Ed25519 keys only/)
  assert.equal(await buildAuthority(), NO_AUTHORITY)
})
