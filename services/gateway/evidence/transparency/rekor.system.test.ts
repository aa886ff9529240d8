import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync, hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { verifyLedger } from '@plat/ledger'
import { freePort, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { REPOSITORY } from '../../reference.ts'
import { started, TOKEN } from '../../testing/started.ts'
import { keyFiles } from '../audit/testing/keys.ts'

// Runs Rekor v2 itself, built from its Go module: needs Go and its module proxy. The first build takes some minutes.
const MODULE = path.join(REPOSITORY, 'test/transparency/rekor')
const SUMS = hash('sha256', readFileSync(path.join(MODULE, 'go.sum')), 'hex').slice(0, 16)
const CACHE = path.join(REPOSITORY, 'node_modules/.cache/plat-rekor', SUMS)
const PACKAGE = 'github.com/sigstore/rekor-tiles/v2/cmd/rekor-server/posix'

before(async () => {
  if (existsSync(path.join(CACHE, 'posix'))) return
  await mkdir(CACHE, { recursive: true })
  const built = spawnSync('go', ['build', '-p', '1', '-o', `${CACHE}/`, PACKAGE], { cwd: MODULE, encoding: 'utf8' })
  assert.equal(built.status, 0, built.error === undefined ? built.stderr : `Go cannot be run: ${built.error.message}`)
})

async function startRekor(t: TestContext) {
  const dir = tempFolder()
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const [signer, keyFile] = [path.join(dir, 'signer.pem'), path.join(dir, 'log.pem')]
  await writeFile(signer, privateKey.export({ format: 'pem', type: 'pkcs8' }))
  await writeFile(keyFile, publicKey.export({ format: 'pem', type: 'spki' }))
  const [http, grpc, metrics] = [await freePort(), await freePort(), await freePort()]
  const flags = {
    hostname: 'log.example',
    'http-port': http,
    'grpc-port': grpc,
    'http-metrics-port': metrics,
    'storage-dir': path.join(dir, 'tiles'),
    'signer-filepath': signer,
    'checkpoint-interval': '1s',
    'batch-max-age': '100ms',
  }
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`)
  const child = spawn(path.join(CACHE, 'posix'), ['serve', ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  let output = ''
  child.stderr.on('data', (chunk) => {
    output += chunk
  })
  t.after(async () => {
    child.kill('SIGKILL')
    await gone
  })
  const url = `http://127.0.0.1:${http}`
  await until(async () => {
    assert.equal(child.exitCode, null, output)
    return (await fetch(`${url}/healthz`).catch(() => null))?.ok === true
  }, 'Rekor')
  return { url, keyFile }
}

for (const algorithm of ['ES256', 'RS256'] as const) {
  test(`Rekor v2 accepts checkpoints of an ${algorithm} key, and its proofs verify`, async (t) => {
    const rekor = await startRekor(t)
    const key = await keyFiles(algorithm)
    const auditPath = path.join(tempFolder(), 'audit.jsonl')
    const own = { enabled: true, url: rekor.url, api: 'v2', publicKeyFiles: [rekor.keyFile] }
    const { gateway } = await started(t, { auditPath, auditCheckpointKey: key.uri, transparencyLog: own })
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
    for (let index = 0; index < 3; index++) {
      const body = JSON.stringify({ target: { agent: `shop/a${index}` } })
      assert.equal((await fetch(`${gateway.adminUrl}/v1/revocations`, { method: 'POST', headers, body })).status, 201)
      const { authorization } = headers
      const options = { method: 'POST', headers: { authorization } }
      const response = await fetch(`${gateway.adminUrl}/v1/audit/anchors`, options)
      const text = await response.text()
      assert.equal(response.status, 200, text)
      assert.equal(JSON.parse(text).index, index)
    }
    const { anchors, place } = await verifyLedger(auditPath, { key: key.pub, logKey: rekor.keyFile, strict: true })
    assert.equal(place, null)
    assert.deepEqual([anchors.found, anchors.signed], [3, 3])
  })
}
