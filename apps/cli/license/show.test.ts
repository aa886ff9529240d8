import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { ephemeralSigner } from '@plat/keys'
import { tempFolder } from '@plat/testkit/local'
import { signJws } from '@plat/tokens'
import { CommandError } from '../shared/output.ts'
import { printed } from '../testing/commands.ts'
import { licenseShow } from './show.ts'

const folder = tempFolder()
const signer = ephemeralSigner()
const key = path.join(folder, 'issuer.pem')
writeFileSync(key, signer.publicKey.key.export({ type: 'spki', format: 'pem' }))
const clock = new TestClock(Date.UTC(2026, 5, 1))
const seconds = (year: number) => Date.UTC(year, 0, 1) / 1000
const claims = { jti: 'L-7', sub: 'Example Ltd', edition: 'team', nbf: seconds(2026), exp: seconds(2027), nodes: 3 }

function licence(more: object = {}): string {
  const file = path.join(folder, 'license.jws')
  writeFileSync(file, signJws(signer, { typ: 'plat-license+jws' }, { ...claims, ...more }))
  return file
}

async function outputOf(options: Partial<Parameters<typeof licenseShow>[0]>) {
  const { code, text } = await printed((output) => licenseShow({ output: 'json', clock, ...options }, output))
  return { code, ...JSON.parse(text) }
}

test('a licence is shown with what it says, and the exit code says whether it counts', async () => {
  const file = licence()
  assert.deepEqual(await outputOf({ path: file, key }), {
    code: 0,
    file,
    edition: 'team',
    state: 'valid',
    id: 'L-7',
    holder: 'Example Ltd',
    from: '2026-01-01T00:00:00Z',
    until: '2027-01-01T00:00:00Z',
    graceDays: 0,
    daysLeft: 214,
    nodes: 3,
  })
  const over = await outputOf({ path: licence({ nbf: 1, exp: 2, nodes: 0 }), key })
  assert.deepEqual([over.code, over.state, over.nodes], [3, 'expired', 'unlimited'])
})

test('a license of an untrusted issuer and a missing file are invalid', async () => {
  const { code, state, edition, reason } = await outputOf({ path: licence() })
  assert.deepEqual([code, state, edition], [3, 'invalid', 'community'])
  assert.match(reason, /no key of anybody who issues licences/)
  const missing = path.join(folder, 'missing.jws')
  const isMissing = (error: unknown) =>
    error instanceof CommandError && /missing\.jws: cannot be read/.test(error.message)
  await assert.rejects(outputOf({ path: missing, key }), isMissing)
  await assert.rejects(outputOf({ path: licence(), key: licence() }), /holds no key/)
})

test('without a file it is that of the running plat, which may have none', async () => {
  const dir = tempFolder()
  mkdirSync(path.join(dir, '.plat'), { mode: 0o700 })
  const running = (licenseFile: string) => {
    const least = { policyFile: key, auditPath: '/a', upstreamsFile: key, identity: { publicKeyFiles: [key] } }
    writeFileSync(path.join(dir, '.plat', 'gateway.json'), JSON.stringify({ ...least, licenseFile }))
    writeFileSync(path.join(dir, '.plat', 'env'), ENV, { mode: 0o600 })
  }
  running('')
  assert.deepEqual(await outputOf({ dir }), {
    code: 0,
    file: 'none',
    edition: 'community',
    state: 'none',
    nodes: 'unlimited',
  })
  running(licence())
  assert.equal((await outputOf({ dir, key })).state, 'valid')
})

const ENV = ['GATEWAY_URL', 'ADMIN_URL', 'IDENTITY_URL', 'BROKER_TOKEN', 'ADMIN_TOKEN']
  .map((name) => `PLAT_${name}=http://127.0.0.1:1\n`)
  .join('')
