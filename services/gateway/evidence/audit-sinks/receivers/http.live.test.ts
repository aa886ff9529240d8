import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import type { SinkConfig } from '../config.ts'
import type { AuditRecord } from '../formats/words.ts'
import { recordOf, setUpSinks, sinkConfig } from '../testing/fixture.ts'
import { assertOcsf } from '../testing/ocsf.ts'
import { parseSyslog } from '../testing/rfc5424.ts'
import { certificates, startHttpReceiver } from '../testing/servers.ts'
import { assertSigned } from '../testing/sigv4.ts'
import { importUrl } from './chronicle.ts'
import { createReceiver } from './receivers.ts'

type Own = Partial<SinkConfig> & Pick<SinkConfig, 'type'>

const environment = { accessKeyId: 'AKIDENV', secretAccessKey: 'env-secret', sessionToken: 'env-session' }

function receiver(t: TestContext, own: Own) {
  const dialer = createDialer({ log: silentLog })
  t.after(() => dialer.close())
  const clouds = { aws: async () => environment, azure: async () => 'of-entra', gcp: async () => 'of-google' }
  const made = createReceiver(sinkConfig({ timeoutSeconds: 60, ...own }), { dialer, clock: systemClock, clouds })
  return {
    made,
    deliver: (records: readonly AuditRecord[]) =>
      made.deliver(records.map((record) => ({ record, text: made.write(record) }))),
  }
}

/** A temporary file. */
async function file(text: string, name = 'file'): Promise<string> {
  const path = join(tempFolder(), name)
  await writeFile(path, text)
  return path
}

const records = [0, 1, 2].map((seq) =>
  recordOf({ kind: 'outcome', op: 'mcp.call', tool: `größe ${seq}`, result: 'completed' }, seq),
)
const linesOf = (body: string) => {
  assert.ok(body.endsWith('\n'))
  return body.slice(0, -1).split('\n')
}

test('http posts one record per line, by default as ocsf, with its token and headers', async (t) => {
  // Shows D3.auditSinks.type.http, D3.auditSinks.url, D3.auditSinks.format.default, D3.auditSinks.headersFile,
  // D3.auditSinks.tokenFile.
  const server = await startHttpReceiver(t)
  const tokenFile = await file('first-token\n')
  const headersFile = await file('X-Tenant: acme\r\n\nX-Team:  blue team \n')
  const to = receiver(t, { type: 'http', url: `${server.url}/in?source=plat`, tokenFile, headersFile })
  assert.deepEqual(await to.deliver(records), { kind: 'accepted' })
  const [one] = server.posted
  assert.ok(one !== undefined)
  assert.deepEqual([one.method, one.path], ['POST', '/in?source=plat'])
  assert.equal(one.headers.authorization, 'Bearer first-token')
  assert.equal(one.headers['content-type'], 'application/x-ndjson')
  assert.deepEqual([one.headers['x-tenant'], one.headers['x-team']], ['acme', 'blue team'])
  const events = linesOf(one.body).map((line) => JSON.parse(line))
  for (const event of events) assertOcsf(event)
  assert.deepEqual(
    events.map(({ raw_data }) => raw_data),
    records.map(({ text }) => text),
  )
  await writeFile(tokenFile, 'second-token')
  await to.deliver(records)
  assert.equal(server.posted[1]?.headers.authorization, 'Bearer second-token')
})

test('http sends the other formats as lines, too', async (t) => {
  const server = await startHttpReceiver(t)
  for (const format of ['json', 'cef', 'rfc5424-json'] as const) {
    await receiver(t, { type: 'http', url: server.url, format }).deliver(records)
  }
  const [json, cef, syslog] = server.posted
  assert.deepEqual(
    linesOf(json?.body ?? ''),
    records.map(({ text }) => text),
  )
  assert.equal(linesOf(cef?.body ?? '').filter((line) => line.startsWith('CEF:0|plat|')).length, 3)
  assert.equal(cef?.headers['content-type'], 'text/plain; charset=utf-8')
  assert.deepEqual(
    linesOf(syslog?.body ?? '').map((line) => parseSyslog(line).message),
    records.map(({ text }) => text),
  )
})

test('over https the receiver is verified by certificate and name, and gets the client certificate', async (t) => {
  // Shows D3.auditSinks.caFile, D3.auditSinks.certFile, D3.auditSinks.keyFile, D3.auditSinks.serverName.
  const { ca, client, tls } = await certificates()
  const server = await startHttpReceiver(t, tls)
  const own = {
    type: 'http',
    url: server.url,
    caFile: await file(ca),
    certFile: await file(client.cert),
    keyFile: await file(client.key),
  } as const
  assert.deepEqual(await receiver(t, { ...own, serverName: 'siem.example' }).deliver(records), { kind: 'accepted' })
  await assert.rejects(receiver(t, { ...own, serverName: 'other.example' }).deliver(records), {
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  })
  await assert.rejects(receiver(t, { ...own, serverName: 'siem.example', caFile: '' }).deliver(records))
  const anonymous = { ...own, serverName: 'siem.example', certFile: '', keyFile: '' }
  await assert.rejects(receiver(t, anonymous).deliver(records))
  assert.equal(server.posted.length, 1)
})

test('nothing is sent without its configured files, and no error quotes a secret', async (t) => {
  const server = await startHttpReceiver(t)
  const own = { type: 'http', url: server.url } as const
  const broken = await file('se cret')
  await assert.rejects(receiver(t, { ...own, tokenFile: broken }).deliver(records), (error: Error) => {
    assert.match(error.message, /^tokenFile: .* holds no valid bearer token$/)
    assert.ok(!error.message.includes('cret'))
    return true
  })
  const gone = await file('x')
  await rm(gone)
  await assert.rejects(receiver(t, { ...own, tokenFile: gone }).deliver(records), /^Error: tokenFile: .* is missing/)
  for (const text of ['no colon', 'Bad Name: x', 'host: other', 'Content-Length: 1', 'x: a\u0000b']) {
    const headersFile = await file(`ok: 1\n${text}`)
    await assert.rejects(receiver(t, { ...own, headersFile }).deliver(records), /headersFile: line 2 of /, text)
  }
  assert.equal(server.posted.length, 0)
})

test('responses distinguish rejected records from temporary failures', async (t) => {
  const server = await startHttpReceiver(t)
  const to = receiver(t, { type: 'http', url: server.url })
  const deliveryFor = async (status: number, body = '', headers = {}) => {
    server.answers = () => ({ status, body, headers })
    return await to.deliver(records)
  }
  for (const status of [200, 201, 202, 204]) assert.equal((await deliveryFor(status)).kind, 'accepted', String(status))
  for (const status of [400, 413, 415, 422]) assert.equal((await deliveryFor(status)).kind, 'refused', String(status))
  for (const status of [301, 307, 401, 403, 404, 408, 429, 500, 502, 503]) {
    assert.equal((await deliveryFor(status, '', { location: `${server.url}/else` })).kind, 'failed', String(status))
  }
  assert.deepEqual(await deliveryFor(429, '', { 'retry-after': '7' }), {
    kind: 'failed',
    reason: 'status 429',
    retryAfterMs: 7000,
  })
  assert.deepEqual(await deliveryFor(503, '', { 'retry-after': '86400' }), {
    kind: 'failed',
    reason: 'status 503',
    retryAfterMs: 300_000,
  })
  assert.deepEqual(await deliveryFor(400, '{"error":{"code":"InvalidStream"}}'), {
    kind: 'refused',
    reason: 'status 400 (InvalidStream)',
  })
  assert.deepEqual(await deliveryFor(400, '{"text":"<you sent {\\"hash\\"…>"}'), {
    kind: 'refused',
    reason: 'status 400',
  })
  const closed = receiver(t, { type: 'http', url: 'http://127.0.0.1:1/' })
  await assert.rejects(closed.deliver(records), /ECONNREFUSED/)
})

test('splunk gets events with time and host, as a stream of objects', async (t) => {
  // Shows D3.auditSinks.type.splunk-hec, D3.auditSinks.index, D3.auditSinks.source, D3.auditSinks.sourceType.
  const server = await startHttpReceiver(t)
  const tokenFile = await file('00000000-1111-2222-3333-444444444444')
  const own = { type: 'splunk-hec', url: server.url, tokenFile, index: 'audit', source: 'gateway' } as const
  const to = receiver(t, own)
  assert.deepEqual(await to.deliver(records), { kind: 'accepted' })
  const [one] = server.posted
  assert.ok(one !== undefined)
  assert.equal(one.path, '/services/collector/event')
  assert.equal(one.headers.authorization, 'Splunk 00000000-1111-2222-3333-444444444444')
  const events = one.body.split('\n').map((line) => JSON.parse(line))
  assert.deepEqual(events[1], {
    time: Date.parse('2026-03-01T12:00:00.123Z') / 1000,
    host: 'gw-1',
    source: 'gateway',
    sourcetype: 'plat:audit',
    index: 'audit',
    event: JSON.parse(records[1]?.text ?? ''),
  })
  await receiver(t, { ...own, format: 'cef', sourceType: 'cef', url: `${server.url}/hec/event` }).deliver(records)
  const [, two] = server.posted
  assert.equal(two?.path, '/hec/event')
  assert.ok(JSON.parse(two?.body.split('\n')[0] ?? '').event.startsWith('CEF:0|'))
  server.answers = () => ({ status: 400, body: '{"text":"Invalid data format","code":6,"invalid-event-number":1}' })
  assert.deepEqual(await to.deliver(records), { kind: 'refused', reason: 'status 400 (Invalid data format)' })
  // The token lacks permission for the index: the records are valid, and none is dropped.
  server.answers = () => ({ status: 400, body: '{"text":"Incorrect index","code":7}' })
  assert.deepEqual(await to.deliver(records), { kind: 'failed', reason: 'status 400 (Incorrect index)' })
})

test('sentinel gets a list of rows for the stream of its rule', async (t) => {
  // Shows D3.auditSinks.credentials.azure, D3.auditSinks.type.sentinel, D3.auditSinks.dcrImmutableId, D3.auditSinks.streamName.
  const server = await startHttpReceiver(t)
  const tokenFile = await file('entra-token')
  const own = {
    type: 'sentinel',
    url: server.url,
    tokenFile,
    dcrImmutableId: 'dcr-0a1b',
    streamName: 'Custom-Plat_CL',
  } as const
  server.answers = () => ({ status: 204 })
  assert.deepEqual(await receiver(t, own).deliver(records), { kind: 'accepted' })
  const [one] = server.posted
  assert.equal(one?.path, '/dataCollectionRules/dcr-0a1b/streams/Custom-Plat_CL?api-version=2023-01-01')
  assert.equal(one?.headers.authorization, 'Bearer entra-token')
  assert.equal(one?.headers['content-type'], 'application/json')
  assert.deepEqual(
    JSON.parse(one?.body ?? ''),
    records.map((record) => ({
      TimeGenerated: '2026-03-01T12:00:00.123456Z',
      Seq: record.seq,
      Hash: record.hash,
      Kind: 'outcome',
      Record: JSON.parse(record.text),
    })),
  )
  await receiver(t, { ...own, tokenFile: '', credentials: 'azure', format: 'ocsf' }).deliver(records)
  assert.equal(server.posted[1]?.headers.authorization, 'Bearer of-entra')
  for (const row of JSON.parse(server.posted[1]?.body ?? '')) assertOcsf(row.Record)
})

test('chronicle gets raw logs of a log type, or events of the Unified Data Model', async (t) => {
  // Shows D3.auditSinks.chronicleMode.logs, D3.auditSinks.chronicleMode.udm.
  // Shows D3.auditSinks.credentials.gcp, D3.auditSinks.type.chronicle, D3.auditSinks.chronicleMode, D3.auditSinks.logType, D3.auditSinks.region.
  const server = await startHttpReceiver(t)
  const instance = '/v1alpha/projects/p/locations/eu/instances/i'
  const tokenFile = await file('google-token')
  const own = { type: 'chronicle', url: server.url + instance, tokenFile } as const
  assert.deepEqual(await receiver(t, { ...own, logType: 'PLAT_AUDIT' }).deliver(records), { kind: 'accepted' })
  assert.deepEqual(await receiver(t, { ...own, chronicleMode: 'udm' }).deliver(records), { kind: 'accepted' })
  const [logs, events] = server.posted
  assert.deepEqual(
    server.posted.map(({ path, headers }) => [path, headers.authorization]),
    [
      [`${instance}/logTypes/PLAT_AUDIT/logs:import`, 'Bearer google-token'],
      [`${instance}/events:import`, 'Bearer google-token'],
    ],
  )
  assert.deepEqual(
    JSON.parse(logs?.body ?? '').inlineSource.logs.map((log: { data: string; logEntryTime: string }) => [
      Buffer.from(log.data, 'base64').toString(),
      log.logEntryTime,
    ]),
    records.map(({ text, rec }) => [text, rec.at]),
  )
  assert.deepEqual(
    JSON.parse(events?.body ?? '').inlineSource.events.map(({ udm }: { udm: { metadata: object } }) => udm.metadata),
    records.map((record) => ({
      eventTimestamp: record.rec.at,
      eventType: 'GENERIC_EVENT',
      vendorName: 'plat',
      productName: 'plat-gateway',
      productEventType: 'outcome',
      productLogId: record.hash,
      description: `outcome mcp.call ${record.rec.tool}`,
    })),
  )
  await receiver(t, { ...own, tokenFile: '', credentials: 'gcp', logType: 'PLAT_AUDIT' }).deliver(records)
  assert.equal(server.posted[2]?.headers.authorization, 'Bearer of-google')
  const regional = { ...own, url: `https://chronicle.googleapis.com${instance}`, region: 'eu', logType: 'PLAT' }
  const expected = `https://eu-chronicle.googleapis.com${instance}/logTypes/PLAT/logs:import`
  assert.equal(importUrl(sinkConfig(regional)).href, expected)
})

test('cloudwatch gets signed events in time order, with credentials that may change', async (t) => {
  // Shows D3.auditSinks.credentials.aws.
  // Shows D3.auditSinks.type.cloudwatch, D3.auditSinks.awsCredentialsDir, D3.auditSinks.logGroup, D3.auditSinks.logStream,
  // D3.auditSinks.region, D3.auditSinks.credentials.
  const server = await startHttpReceiver(t)
  const dir = tempFolder()
  await writeFile(join(dir, 'access-key-id'), 'AKIDFILE\n')
  await writeFile(join(dir, 'secret-access-key'), 'first-secret\n')
  const place = { region: 'eu-central-1', logGroup: '/plat/audit', logStream: 'gw-1' }
  const own = { type: 'cloudwatch', url: `${server.url}/`, ...place } as const
  const to = receiver(t, { ...own, awsCredentialsDir: dir })
  const late = recordOf({ kind: 'outcome', at: '2026-03-01T11:00:00.000000Z' }, 3)
  assert.deepEqual(await to.deliver([...records, late]), { kind: 'accepted', count: 4, refused: [] })
  const [one] = server.posted
  assert.ok(one !== undefined)
  const signed = assertSigned(one, 'first-secret')
  assert.equal(signed.keyId, 'AKIDFILE')
  assert.match(signed.scope, /^\d{8}\/eu-central-1\/logs\/aws4_request$/)
  assert.equal(one.headers['x-amz-target'], 'Logs_20140328.PutLogEvents')
  assert.equal(one.headers['content-type'], 'application/x-amz-json-1.1')
  const { logGroupName, logStreamName, logEvents } = JSON.parse(one.body)
  assert.deepEqual([logGroupName, logStreamName], ['/plat/audit', 'gw-1'])
  assert.deepEqual(
    logEvents.map(({ message }: { message: string }) => message),
    [late, ...records].map(({ text }) => text),
  )
  await writeFile(join(dir, 'secret-access-key'), 'second-secret')
  await writeFile(join(dir, 'session-token'), 'session')
  await to.deliver(records)
  const [, two] = server.posted
  assert.ok(two !== undefined)
  assertSigned(two, 'second-secret')
  assert.equal(two.headers['x-amz-security-token'], 'session')
  await receiver(t, { ...own, credentials: 'aws' }).deliver(records)
  const [, , three] = server.posted
  assert.ok(three !== undefined)
  assert.equal(assertSigned(three, 'env-secret').keyId, 'AKIDENV')
})

test('cloudwatch batches span at most a day, and rejected events are reported by record', async (t) => {
  const server = await startHttpReceiver(t)
  const place = { region: 'eu-central-1', logGroup: 'g', logStream: 's' }
  const to = receiver(t, { type: 'cloudwatch', url: `${server.url}/`, ...place, credentials: 'aws' })
  const days = ['01T00', '01T23', '02T01', '02T02'].map((hour, seq) =>
    recordOf({ kind: 'outcome', at: `2026-03-${hour}:00:00.000000Z` }, seq),
  )
  assert.deepEqual(await to.deliver(days), { kind: 'accepted', count: 2, refused: [] })
  assert.equal(JSON.parse(server.posted[0]?.body ?? '').logEvents.length, 2)
  const rejectedLogEventsInfo = { tooOldLogEventEndIndex: 1, expiredLogEventEndIndex: 0, tooNewLogEventStartIndex: 2 }
  server.answers = () => ({ status: 200, body: JSON.stringify({ rejectedLogEventsInfo }) })
  const delivery = await to.deliver(records)
  assert.ok(delivery.kind === 'accepted')
  assert.deepEqual(
    delivery.refused?.map(({ item, reason }) => [item.record.seq, reason]),
    [
      [0, 'too old for the log group'],
      [2, 'too new for the log group'],
    ],
  )
  const fault = (type: string) => {
    server.answers = () => ({ status: 400, body: JSON.stringify({ __type: type }) })
    return to.deliver(records)
  }
  assert.equal((await fault('com.amazonaws#InvalidParameterException')).kind, 'refused')
  for (const type of [
    'ExpiredTokenException',
    'ResourceNotFoundException',
    'ThrottlingException',
    'AccessDeniedException',
  ]) {
    assert.equal((await fault(type)).kind, 'failed', type)
  }
})

test('a receiver that refuses one record of many gets all others, and a single oversized one is dropped', async (t) => {
  const fixture = await setUpSinks(t)
  const server = await startHttpReceiver(t)
  const last = await fixture.fill(20)
  const got: string[] = []
  server.answers = ({ body }) => {
    if (body.length > 3000) return { status: 413 }
    if (body.includes('"tool":"t4"')) return { status: 422 }
    got.push(...linesOf(body))
    return { status: 200 }
  }
  const { made } = receiver(t, { type: 'http', url: server.url, format: 'json' })
  const { counted } = await fixture.sink(made)
  await until(() => counted.limit === last, 'the others')
  assert.deepEqual([counted.dead, counted.lagging], [1, 0])
  assert.deepEqual(
    got,
    fixture.lines().filter((line) => !line.includes('"tool":"t4"')),
  )
})
