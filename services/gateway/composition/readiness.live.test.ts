import assert from 'node:assert/strict'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { TestClock } from '@plat/core'
import { segmentPath, verifyLedger } from '@plat/ledger'
import { openFileJournal } from '@plat/state'
import { MemoryDisk } from '@plat/testkit/disk'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { Readiness } from './readiness.ts'

async function setUp(t: TestContext, more: Readonly<Record<string, unknown>> = {}) {
  const revocationsFile = path.join(tempFolder(), 'revocations.json')
  writeFileSync(revocationsFile, JSON.stringify({ version: 1, revocations: [] }))
  const upstream = await startScriptedUpstream()
  upstream.answers((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [] } }))
  })
  const config = { revocationsFile, revocationsRecheckMillis: 50, ...more }
  const gateway = await startGatewayProcess({ servers: { notes: upstream.url }, config })
  t.after(() => Promise.all([gateway.close(), upstream.close()]))
  const call = () =>
    fetch(`${gateway.url}/mcp/notes`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'look', arguments: {} } }),
    })
  return { revocationsFile, call, ready: () => fetch(`${gateway.url}/readyz`), complaints: () => gateway.complaints() }
}

test('while the list of revocations is broken /readyz says so, and a denied MCP call has status 503 and its JSON-RPC error', async (t) => {
  const { revocationsFile, call, ready } = await setUp(t)
  assert.deepEqual([(await call()).status, (await ready()).status], [200, 200])
  const broken = `${revocationsFile}.new`
  writeFileSync(broken, 'no list')
  renameSync(broken, revocationsFile)
  await until(async () => (await ready()).status === 503, 'a gateway that is not ready')
  assert.deepEqual(await (await ready()).json(), { status: 'unavailable', reasons: ['revocations'] })
  const denied = await call()
  assert.equal(denied.status, 503)
  const { id, error } = JSON.parse(await denied.text())
  assert.deepEqual([id, error.code, error.data.error], [1, 503, 'revocations_unavailable'])
  writeFileSync(broken, JSON.stringify({ version: 1, revocations: [] }))
  renameSync(broken, revocationsFile)
  await until(async () => (await ready()).status === 200, 'a gateway that is ready again')
  assert.equal((await call()).status, 200)
})

test('while a segment of the ledger cannot be sealed, log and /readyz say so, and the gateway goes on when it can', async (t) => {
  const auditPath = path.join(tempFolder(), 'audit.jsonl')
  const { call, ready, complaints } = await setUp(t, { auditPath, auditSegmentBytes: 65_536 })
  const inTheWay = segmentPath(auditPath, 0)
  writeFileSync(inTheWay, 'another file')
  await until(async () => {
    await Promise.all(Array.from({ length: 8 }, call))
    return (await ready()).status === 503
  }, 'a segment that cannot be sealed')
  assert.deepEqual(await (await ready()).json(), { status: 'unavailable', reasons: ['audit ledger'] })
  assert.equal((await call()).status, 503)
  const saysWhy = (line: string) => line.includes('cannot be written') && line.includes('exists already: move it away')
  await until(() => complaints().some(saysWhy), 'the line that names the file in the way')
  rmSync(inTheWay)
  await until(async () => (await ready()).status === 200, 'a ledger that goes on')
  assert.equal((await call()).status, 200)
  const { verdict, message } = await verifyLedger(auditPath, { strict: true })
  assert.equal(verdict, 'valid', message)
})

test('a journal that calls need makes the gateway not ready while it cannot be written; another one does not', async () => {
  const clock = new TestClock()
  const readiness = new Readiness()
  // The write (1) of the first event fails in each of the two files.
  const fault = { at: 1, kind: 'EIO' } as const
  const journals = readiness.watched({
    shared: false,
    catchUp: null,
    open: (spec) =>
      openFileJournal({
        ...spec,
        path: path.join(tempFolder(), spec.name),
        clock,
        files: new MemoryDisk(new Map(), [fault]),
      }),
  })
  const [approvals, usage] = await Promise.all(
    ['approvals', 'usage'].map((name) => journals.open({ name, path: '', decode: String })),
  )
  await approvals?.append('a', ['x']).catch(() => {})
  await usage?.append('a', ['x']).catch(() => {})
  assert.deepEqual(readiness.reasons(), ['journal approvals'])
  await clock.advance(300)
  assert.deepEqual(readiness.reasons(), [])
  await Promise.all([approvals?.close(), usage?.close()])
})
