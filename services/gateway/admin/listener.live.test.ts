import assert from 'node:assert/strict'
import { test } from 'node:test'
import { started, TOKEN } from '../testing/started.ts'

const PATHS = ['/v1/approvals', '/v1/revocations', '/metrics']

async function statuses(url: string): Promise<number[]> {
  const headers = { authorization: `Bearer ${TOKEN}` }
  return Promise.all(PATHS.map(async (path) => (await fetch(url + path, { headers })).status))
}

test('with adminListen the admin API and metrics are served only there, and the main listener answers 404', async (t) => {
  // Shows D3.error.adminOnMainListener, D3.listen.adminListen and D3.exposition.adminPort.
  const { gateway } = await started(t, { adminListen: 'localhost:0' })
  assert.notEqual(gateway.adminUrl, gateway.url)
  assert.deepEqual(await statuses(gateway.url), [404, 404, 404])
  assert.deepEqual(await statuses(gateway.adminUrl), [200, 200, 200])
  assert.equal((await fetch(`${gateway.url}/readyz`)).status, 200)
})

test('without adminListen the main listener serves them', async (t) => {
  const { gateway } = await started(t, {})
  assert.equal(gateway.adminUrl, gateway.url)
  assert.deepEqual(await statuses(gateway.url), [200, 200, 200])
})
