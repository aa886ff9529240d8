import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { verifyLedger } from '@plat/ledger'
import { closed, listening } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { certified } from '../../testing/certified.ts'
import { AUDIENCE, provider } from '../../testing/people.ts'
import { TOKEN } from '../../testing/started.ts'
import { type Node, setUp } from './testing/fixture.ts'

const FORWARD = 'plat_gateway_audit_forward_'
const DENIED = (rule: string) => `plat_gateway_offline_denials_total{rule="${rule}"}`

/** Makes calls until the spool must be full; denials are recorded too, so this sends no more than needed. */
async function fill(edge: Node): Promise<void> {
  for (let index = 0; index < 20; index++) await edge.call('add')
  await until(async () => (await edge.metric(`${FORWARD}spool_full`)) === 1, 'a spool that is full')
  assert.equal(await edge.call('add'), 'offline')
}

async function freed(edge: Node): Promise<void> {
  await until(async () => (await edge.metric(`${FORWARD}spool_full`)) === 0, 'room in the spool')
  assert.equal(await edge.call('add'), 'upstream_error')
}

/** Waits until all records of the edge are acknowledged. */
async function settled(edge: Node): Promise<number> {
  let acked = -1
  await until(async () => {
    acked = await edge.metric(`${FORWARD}acked_seq`)
    return acked === edge.lines().length - 1
  }, 'the acknowledgement of the last record')
  return acked
}

// These tests mostly wait.
describe('an edge', { concurrency: true }, () => {
  test('an edge works without a collector, forwards everything to one later, and reports its state', async (t) => {
    // Shows D3.offline.approvals.deny.
    // Shows D3.default.computed.offline.spoolDir, D3.default.computed.auditCollector.dir.
    // Shows D3.offline.enabled, D3.offline.edgeId, D3.offline.sealIntervalSeconds, D3.offline.collectorKeyFiles,
    // D3.offline.forward.url, D3.offline.forward.tokenFile, D3.offline.forward.intervalSeconds,
    // D3.offline.disconnectedAfterSeconds, D3.offline.approvals, D3.auditCollector.enabled, D3.auditCollector.id,
    // D3.auditCollector.edges, D3.event.segmentsForwarded, D3.metric.plat_gateway_audit_forward_unforwarded_records,
    // D3.metric.plat_gateway_audit_forward_oldest_unforwarded_age_seconds,
    // D3.metric.plat_gateway_audit_forward_last_ack_timestamp_seconds, D3.metric.plat_gateway_audit_forward_acked_seq,
    // D3.metric.plat_gateway_audit_forward_connected, D3.metric.plat_gateway_audit_forward_errors_total,
    // D3.metric.plat_gateway_audit_collector_segments_total and D3.metric.plat_gateway_audit_collector_edge_seq.
    const { edge: startEdge, hub: startHub, stored, edgeDir, hubDir } = await setUp(t)
    const edge = await startEdge()
    assert.equal(await edge.call('add'), 'upstream_error')
    assert.equal(await edge.call('ask'), 'offline')
    assert.equal(await edge.metric(DENIED('approval-offline')), 1)
    await until(async () => (await edge.metric(`${FORWARD}errors_total`)) > 0, 'a failure to forward')
    assert.deepEqual([await edge.metric(`${FORWARD}connected`), await edge.metric(`${FORWARD}acked_seq`)], [0, -1])
    assert.equal(await edge.metric(`${FORWARD}last_ack_timestamp_seconds`), 0)
    assert.equal(await edge.metric(`${FORWARD}unforwarded_records`), edge.lines().length)
    await until(async () => (await edge.metric(`${FORWARD}oldest_unforwarded_age_seconds`)) > 0, 'a record that waits')

    const hub = await startHub()
    await settled(edge)
    assert.deepEqual(stored(), edge.lines())
    assert.deepEqual(
      [await edge.metric(`${FORWARD}connected`), await edge.metric(`${FORWARD}unforwarded_records`)],
      [1, 0],
    )
    assert.ok((await edge.metric(`${FORWARD}last_ack_timestamp_seconds`)) > 1.7e9)
    assert.equal(await edge.metric(`${FORWARD}oldest_unforwarded_age_seconds`), 0)
    assert.equal(await hub.metric('plat_gateway_audit_collector_edge_seq{edge="north"}'), edge.lines().length - 1)
    assert.ok((await hub.metric('plat_gateway_audit_collector_segments_total{result="taken"}')) > 0)
    assert.deepEqual(readdirSync(join(edgeDir, 'audit.jsonl.spool')), ['progress.json'])
    // An approver is reachable now; none responds in time.
    await until(async () => (await edge.call('ask')) === 'approval_expired', 'an edge that holds calls for approval')

    await hub.gateway.drain()
    await until(async () => (await edge.metric(`${FORWARD}connected`)) === 0, 'the state disconnected')
    await until(async () => (await edge.call('ask')) === 'offline', 'a denial while disconnected')
    const again = await startHub()
    await settled(edge)
    await edge.gateway.drain()
    await again.gateway.drain()
    const path = join(hubDir, 'audit.jsonl.edges', 'north', 'ledger.jsonl')
    assert.deepEqual(stored(), edge.lines().slice(0, stored().length))
    assert.equal((await verifyLedger(path, { strict: true })).exitCode, 0)
    const admin = again.lines().filter((line) => line.includes('"kind":"admin"') && line.includes('segments'))
    assert.deepEqual(admin, [], 'forwarding leaves anchors, and no record for each query')
  })

  test('a full spool denies only tool calls, keeps its limit, and is freed by a collector', async (t) => {
    // Shows D3.offline.fullPolicy.failClosed.
    // Shows D3.offline.spoolDir, D3.offline.spoolMaxBytes, D3.offline.segmentMaxRecords, D3.offline.fullPolicy, D3.error.spoolFull,
    // D3.metric.plat_gateway_audit_forward_spool_bytes, D3.metric.plat_gateway_audit_forward_spool_max_bytes,
    // D3.metric.plat_gateway_audit_forward_spool_full and D3.metric.plat_gateway_offline_denials_total.
    const { edge: startEdge, hub: startHub, stored, edgeDir } = await setUp(t)
    const spoolDir = join(edgeDir, 'spool')
    const offline = { spoolDir, spoolMaxBytes: 20_000, segmentMaxRecords: 5 }
    const edge = await startEdge(offline)
    await fill(edge)
    assert.deepEqual(
      [await edge.metric(`${FORWARD}spool_full`), await edge.metric(`${FORWARD}spool_max_bytes`)],
      [1, 20_000],
    )
    const bytes = await edge.metric(`${FORWARD}spool_bytes`)
    assert.ok(bytes > 9_000 && bytes <= 20_000, String(bytes))
    assert.ok((await edge.metric(DENIED('spool-full'))) > 0)
    for (const name of readdirSync(spoolDir)) assert.match(name, /^north-\d{16}\.segment$/)
    await edge.gateway.drain()

    // A restart finds the spool still full.
    const second = await startEdge(offline)
    assert.equal(await second.call('add'), 'offline')
    await startHub()
    await freed(second)
    await settled(second)
    assert.equal(await second.metric(`${FORWARD}spool_full`), 0)
    assert.deepEqual(stored(), second.lines())
  })

  test('segments and receipts can be copied by hand, in any order: early and partial ones wait', async (t) => {
    // Shows D3.exposition.collectorRefused.gap.
    // Shows D3.offline.receiptDropDir, D3.auditCollector.dropDir, D3.auditCollector.pollSeconds and
    // D3.metric.plat_gateway_audit_collector_refused_total.
    const { edge: startEdge, hub: startHub, stored, edgeDir, hubDir } = await setUp(t)
    const [dropDir, receiptDropDir] = [join(hubDir, 'drop'), join(edgeDir, 'receipts')]
    for (const dir of [dropDir, receiptDropDir]) mkdirSync(dir)
    const forward = { intervalSeconds: 1 }
    const edge = await startEdge({ segmentMaxRecords: 4, receiptDropDir, forward })
    const hub = await startHub({ dropDir, pollSeconds: 1 })
    const spool = join(edgeDir, 'audit.jsonl.spool')
    const sealed = () => (existsSync(spool) ? readdirSync(spool).filter((name) => name.endsWith('.segment')) : [])
    for (let index = 0; index < 6; index++) await edge.call('add')
    await until(() => sealed().length >= 3, 'three segments')
    const [first = '', ...later] = sealed().toSorted()
    for (const name of later) copyFileSync(join(spool, name), join(dropDir, name))
    writeFileSync(join(dropDir, 'stranger.segment'), 'no segment\n')
    await until(() => existsSync(join(dropDir, 'refused', 'stranger.segment')), 'the refusal of an invalid segment')
    const refused = (reason: string) => hub.metric(`plat_gateway_audit_collector_refused_total{reason="${reason}"}`)
    await until(async () => (await refused('gap')) > 0 && (await refused('malformed')) === 1, 'the refusals')
    assert.deepEqual(stored(), [])
    copyFileSync(join(spool, first), join(dropDir, first))
    await until(() => !readdirSync(dropDir).some((name) => name.endsWith('.segment')), 'every segment taken')
    assert.deepEqual(stored(), edge.lines().slice(0, stored().length))
    for (const name of readdirSync(join(dropDir, 'receipts'))) {
      copyFileSync(join(dropDir, 'receipts', name), join(receiptDropDir, name))
    }
    writeFileSync(join(receiptDropDir, 'forged.receipt'), 'no receipt')
    const acked = stored().length - 1
    await until(async () => (await edge.metric(`${FORWARD}acked_seq`)) === acked, 'the receipts to count')
    await until(() => existsSync(join(receiptDropDir, 'forged.receipt.refused')), 'the refusal of an invalid receipt')
    await until(() => !sealed().some((name) => [first, ...later].includes(name)), 'room in the spool')
  })

  test('segments go over TLS verified by caFile, and requests to an unresponsive collector time out', async (t) => {
    // Shows D3.offline.forward.caFile and D3.offline.forward.timeoutSeconds.
    const { files, server } = await certified()
    const { edge: startEdge, hub: startHub, edgeDir } = await setUp(t)
    const caFile = join(edgeDir, 'ca.pem')
    writeFileSync(caFile, server.pem)
    const { certFile, keyFile } = files
    const { gateway } = await startHub({}, { tls: { certFile, keyFile } })
    const silent = createServer(() => {})
    const tokenFile = join(edgeDir, 'token')
    const forward = { tokenFile, caFile, intervalSeconds: 1, maxBackoffSeconds: 1, timeoutSeconds: 1 }
    const lost = await startEdge({ forward: { ...forward, url: `http://127.0.0.1:${await listening(silent)}` } })
    await until(async () => (await lost.metric(`${FORWARD}errors_total`)) > 1, 'two timeouts')
    await lost.gateway.drain()
    await closed(silent)
    const url = gateway.url.replace('127.0.0.1', 'localhost')
    const edge = await startEdge({ forward: { ...forward, timeoutSeconds: 30, url } })
    await settled(edge)
    assert.equal(await edge.metric(`${FORWARD}errors_total`), 0)
  })

  test('a disconnected edge denies tools of high risk once its revocation list is too old', async (t) => {
    // Shows D3.offline.maxRevocationStalenessSeconds, D3.offline.highRiskTools and D3.default.computed.offline.highRiskTools.
    const { edge: startEdge, edgeDir } = await setUp(t)
    const revocationsFile = join(edgeDir, 'revocations.json')
    const write = () => writeFileSync(revocationsFile, JSON.stringify({ version: 1, revocations: [] }))
    const at = (seconds: number) => utimesSync(revocationsFile, seconds, seconds)
    write()
    at(1e9)
    const offline = { maxRevocationStalenessSeconds: 3600, highRiskTools: ['notes/delete*'] }
    const edge = await startEdge(offline, { revocationsFile })
    assert.equal(await edge.call('delete_all'), 'offline')
    assert.equal(await edge.call('add'), 'upstream_error')
    assert.equal(await edge.metric(DENIED('revocation-stale')), 1)
    write()
    await until(async () => (await edge.call('delete_all')) === 'upstream_error', 'a new list')
    await edge.gateway.drain()
    at(1e9)
    const every = await startEdge({ maxRevocationStalenessSeconds: 3600 }, { revocationsFile })
    assert.equal(await every.call('add'), 'offline')
  })

  test('with localApprovers a disconnected edge holds calls, and only local approvers can approve', async (t) => {
    // Shows D3.offline.approvals.localApprovers.
    // Shows D3.offline.approvals and D3.offline.localApprovers.
    const people = await provider(t)
    const { edge: startEdge } = await setUp(t)
    const edge = await startEdge(
      { approvals: 'localApprovers', localApprovers: ['user:grace', 'wardens'] },
      {
        approvalTimeoutSeconds: 60,
        adminAuth: {
          mode: 'both',
          roles: { approver: ['staff'] },
          devTokenApprovers: true,
          oidc: { issuer: people.state.issuer, audience: AUDIENCE },
        },
      },
    )
    const ask = async (path: string, token: string, method = 'GET') => {
      const response = await fetch(`${edge.gateway.url}/v1/approvals${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
      })
      return { status: response.status, body: JSON.parse(await response.text()) }
    }
    const person = (name: string, ...groups: string[]) =>
      people.token({ preferred_username: name, groups: ['staff', ...groups] })
    const pending = async () => {
      let id = ''
      await until(async () => {
        id = (await ask('?state=pending', TOKEN)).body.items[0]?.id ?? ''
        return id !== ''
      }, 'the question')
      return id
    }
    for (const approver of [await person('grace'), await person('eve', 'wardens')]) {
      const held = edge.call('ask')
      const id = await pending()
      for (const stranger of [TOKEN, await person('bob'), await person('bob', 'user:grace')]) {
        const refused = await ask(`/${id}/approve`, stranger, 'POST')
        assert.deepEqual([refused.status, refused.body.error], [403, 'offline'])
      }
      assert.equal((await ask(`/${id}/approve`, approver, 'POST')).status, 200)
      assert.equal(await held, 'upstream_error')
    }
    const held = edge.call('ask')
    // A denial is always safe: anyone with the role may deny.
    assert.equal((await ask(`/${await pending()}/deny`, await person('bob'), 'POST')).status, 200)
    assert.equal(await held, 'approval_denied')
  })
})
