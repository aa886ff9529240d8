import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { buildInfo, systemClock, systemIds } from '@plat/core'
import { silentLog } from '@plat/process'
import { testIssuer } from '@plat/testkit/identity'
import { loadGatewayConfig } from '../config.ts'
import { type Gateway, startGateway } from '../gateway.ts'

const TOKEN = 'a-token-of-the-test'
const PATHS = ['/v1/approvals', '/v1/revocations', '/metrics']

async function started(t: TestContext, own: object): Promise<Gateway> {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  t.after(() => rm(dir, { recursive: true }))
  const pem = testIssuer().signer.publicKey.key.export({ type: 'spki', format: 'pem' })
  await writeFile(join(dir, 'pub.pem'), pem)
  const least = {
    listen: '127.0.0.1:0',
    identity: { publicKeyFiles: [join(dir, 'pub.pem')] },
    policyFile: join(dir, 'policies.json'),
    upstreams: { notes: 'http://127.0.0.1:9/mcp' },
    auditPath: join(dir, 'audit.jsonl'),
  }
  await writeFile(join(dir, 'gateway.json'), JSON.stringify({ ...least, ...own }))
  const loaded = loadGatewayConfig({ env: {}, flags: { config: join(dir, 'gateway.json'), listen: '' } })
  if (!loaded.ok) assert.fail(JSON.stringify(loaded.problems))
  const shared = { clock: systemClock, ids: systemIds(systemClock), log: silentLog, build: buildInfo('gateway') }
  const gateway = await startGateway({ ...shared, config: loaded.config, env: { PLAT_ADMIN_TOKEN: TOKEN } })
  t.after(() => gateway.drain())
  return gateway
}

async function statuses(url: string): Promise<number[]> {
  const headers = { authorization: `Bearer ${TOKEN}` }
  return Promise.all(PATHS.map(async (path) => (await fetch(url + path, { headers })).status))
}

test('with adminListen the admin API and metrics are served only there, and the main listener answers 404', async (t) => {
  // Shows D3.error.adminOnMainListener, D3.listen.adminListen and D3.exposition.adminPort.
  const gateway = await started(t, { adminListen: 'localhost:0' })
  assert.notEqual(gateway.adminUrl, gateway.url)
  assert.deepEqual(await statuses(gateway.url), [404, 404, 404])
  assert.deepEqual(await statuses(gateway.adminUrl), [200, 200, 200])
  assert.equal((await fetch(`${gateway.url}/readyz`)).status, 200)
})

test('without adminListen the main listener serves them', async (t) => {
  const gateway = await started(t, {})
  assert.equal(gateway.adminUrl, gateway.url)
  assert.deepEqual(await statuses(gateway.url), [200, 200, 200])
})
