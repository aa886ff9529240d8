import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { verifyLedger } from '@plat/ledger'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { freePort, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { TOKEN } from '../../testing/started.ts'
import { keyFiles } from '../audit/testing/keys.ts'

/** Writes records as fast as possible until the gateway is gone. */
async function act({ url, token }: GatewayProcess): Promise<void> {
  const headers = {
    authorization: `Bearer ${token}`,
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
  }
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{}}}'
  for (;;) {
    const sent = await fetch(`${url}/mcp/notes`, { method: 'POST', headers, body }).catch(() => null)
    if (sent === null) return
    await sent.arrayBuffer().catch(() => null)
  }
}

test('repeated kills of edge and collector under load neither lose nor repeat records', async (t) => {
  const [edgeDir, hubDir] = [tempFolder(), tempFolder()]
  const [edgeKey, hubKey] = [await keyFiles(), await keyFiles()]
  const port = await freePort()
  const tokenFile = join(edgeDir, 'token')
  await writeFile(tokenFile, TOKEN)
  const paths = {
    edge: join(edgeDir, 'audit.jsonl'),
    stored: join(hubDir, 'audit.jsonl.edges', 'north', 'ledger.jsonl'),
  }
  const servers = { notes: 'http://127.0.0.1:9' }
  const env = { PLAT_ADMIN_TOKEN: TOKEN }
  const startEdge = () => {
    const forward = { url: `http://127.0.0.1:${port}`, tokenFile, intervalSeconds: 1, maxBackoffSeconds: 1 }
    const offline = { enabled: true, edgeId: 'north', segmentMaxRecords: 20, sealIntervalSeconds: 1, forward }
    const keys = { auditCheckpointKey: edgeKey.uri, offline: { ...offline, collectorKeyFiles: [hubKey.pub] } }
    return startGatewayProcess({ servers, env, config: { auditPath: paths.edge, ...keys } })
  }
  const startHub = () => {
    const auditCollector = { enabled: true, edges: [{ id: 'north', publicKeyFiles: [edgeKey.pub] }] }
    const keys = { auditCheckpointKey: hubKey.uri, auditCollector, listen: `127.0.0.1:${port}` }
    return startGatewayProcess({ servers, env, config: { auditPath: join(hubDir, 'audit.jsonl'), ...keys } })
  }
  const stored = () => (existsSync(paths.stored) ? readFileSync(paths.stored) : Buffer.alloc(0))
  let [edge, hub] = await Promise.all([startEdge(), startHub()])
  t.after(() => Promise.all([edge.close(), hub.close()]))
  for (const round of ['hub', 'both']) {
    const acting = act(edge)
    const before = stored().length
    await until(() => stored().length > before, 'a segment at the collector')
    const victims = round === 'hub' ? [hub] : [edge, hub]
    await Promise.all(victims.map((victim) => victim.kill()))
    if (victims.includes(edge)) {
      await edge.close()
      edge = await startEdge()
    }
    if (victims.includes(hub)) {
      await hub.close()
      hub = await startHub()
    }
    if (round === 'both') await acting
  }
  await edge.close()
  edge = await startEdge()
  const whole = readFileSync(paths.edge).length
  await until(() => stored().length >= whole, 'the whole ledger at the collector')
  await Promise.all([edge.close(), hub.close()])
  const [written, taken] = [readFileSync(paths.edge), stored()]
  assert.ok(taken.equals(written.subarray(0, taken.length)), 'the stored ledger is the beginning of the written one')
  const found = await verifyLedger(paths.stored, { key: edgeKey.pub, strict: true })
  assert.equal(found.exitCode, 0, found.message)
})
