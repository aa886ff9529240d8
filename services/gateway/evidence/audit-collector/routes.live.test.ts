import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { readSegmentReceipt } from '@plat/ledger'
import { tempFolder } from '@plat/testkit/local'
import { AUDIENCE, provider } from '../../testing/people.ts'
import { started, TOKEN } from '../../testing/started.ts'
import { keyFiles } from '../audit/testing/keys.ts'
import { testEdge } from './testing/edge.ts'

const TYPE = 'application/vnd.plat.segment'

test('POST /v1/audit/segments accepts segments from forwarders only, and reports problems of the others', async (t) => {
  // Shows D3.auditCollector.dir, D3.auditCollector.maxSegmentBytes, D3.adminAuth.role.audit-forwarder and
  // D3.default.computed.auditCollector.id.
  const [people, edge, key] = [await provider(t), await testEdge(60), await keyFiles()]
  const dir = join(tempFolder(), 'edges')
  const pub = join(tempFolder(), 'pub.pem')
  await writeFile(pub, edge.signer.publicKey.key.export({ format: 'pem', type: 'spki' }))
  const { gateway } = await started(t, {
    auditCheckpointKey: key.uri,
    auditCollector: { enabled: true, dir, maxSegmentBytes: 12_000, edges: [{ id: 'north', publicKeyFiles: [pub] }] },
    adminAuth: {
      mode: 'both',
      roles: { 'audit-forwarder': ['edges'], viewer: ['staff'], auditor: ['staff'], approver: ['staff'] },
      oidc: { issuer: people.state.issuer, audience: AUDIENCE },
    },
  })
  const [forwarder, staff] = [await people.token({ groups: ['edges'] }), await people.token({ groups: ['staff'] })]
  const post = async (body: Buffer, token: string | null = forwarder, type = TYPE) => {
    const response = await fetch(`${gateway.url}/v1/audit/segments`, {
      method: 'POST',
      headers: { 'content-type': type, ...(token !== null && { authorization: `Bearer ${token}` }) },
      body: new Uint8Array(body),
    })
    const { error, message, upTo, receipt } = JSON.parse(await response.text())
    if (receipt !== undefined) assert.equal(readSegmentReceipt(receipt)?.says.collector, hostname())
    return [response.status, error ?? upTo, String(message ?? '').split(':', 1)[0]]
  }
  const first = await edge.segment(0, 9)
  assert.deepEqual((await post(first, null)).slice(0, 2), [401, 'unauthenticated'])
  assert.deepEqual((await post(first, staff)).slice(0, 2), [403, 'forbidden'])
  assert.deepEqual((await post(Buffer.from('{}'), forwarder, 'application/json')).slice(0, 2), [
    415,
    'unsupported_media_type',
  ])
  assert.deepEqual(await post(first), [200, 9, ''])
  assert.deepEqual(await post(first, TOKEN), [200, 9, ''])
  assert.deepEqual(await post(await edge.segment(20, 24)), [409, 'conflict', 'gap'])
  assert.deepEqual(await post(await edge.segment(10, 14, { head: 'a'.repeat(64) })), [400, 'invalid_request', 'chain'])
  assert.deepEqual(await post(await edge.segment(10, 14, { edge: 'south' })), [403, 'forbidden', 'edge'])
  assert.deepEqual(await post(await edge.segment(10, 14, {}, key.signer)), [403, 'forbidden', 'signature'])
  assert.deepEqual((await post(await edge.segment(10, 59))).slice(0, 2), [413, 'body_too_large'])
  assert.deepEqual(await post(await edge.segment(10, 14)), [200, 14, ''])
  const stored = readFileSync(join(dir, 'north', 'ledger.jsonl'), 'utf8')
  assert.equal(stored, `${edge.lines().slice(0, 15).join('\n')}\n`)
  // The role grants nothing else.
  const headers = { authorization: `Bearer ${forwarder}` }
  for (const path of ['audit/head', 'audit/records', 'approvals', 'revocations']) {
    assert.equal((await fetch(`${gateway.url}/v1/${path}`, { headers })).status, 403, path)
  }
})

test('a gateway without a collector has no such route', async (t) => {
  const { gateway } = await started(t, {})
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': TYPE }
  const response = await fetch(`${gateway.url}/v1/audit/segments`, { method: 'POST', headers, body: 'x' })
  // The path lists sealed segments.
  assert.deepEqual([response.status, response.headers.get('allow')], [405, 'GET, HEAD'])
})
