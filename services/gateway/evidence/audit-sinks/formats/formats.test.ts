import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { recordOf } from '../testing/fixture.ts'
import { assertOcsf } from '../testing/ocsf.ts'
import { parseFrames, parseSyslog } from '../testing/rfc5424.ts'
import { cef } from './cef.ts'
import { formatOf, syslogFormatOf } from './format.ts'
import { ocsf } from './ocsf.ts'
import { udm } from './udm.ts'
import type { AuditRecord } from './words.ts'

const options = { facility: 13, sdId: 'plat@32473' }

const call = {
  call: 'c-1',
  session: 's-1',
  namespace: 'default',
  agent: 'assistant',
  user: 'alice',
  op: 'mcp.call',
  server: 'notes',
  tool: 'add_note',
}
/** One record of each kind, as the gateway writes them. */
const records: readonly AuditRecord[] = [
  { kind: 'config', ledgerId: 'l-1', format: 1, createdAt: '2026-03-01T12:00:00Z' },
  { kind: 'intent', ...call, action: 'allow', argsBytes: 21, facts: { tier: 'standard', groups: [] } },
  {
    kind: 'outcome',
    ...call,
    action: 'allow',
    result: 'completed',
    status: 200,
    ms: 4,
    costMicros: 12,
    bytesUp: 3,
    bytesDown: 9,
  },
  {
    kind: 'decision',
    ...call,
    action: 'deny',
    code: 'policy_denied',
    policy: 'default/p',
    rule: 'r',
    reason: 'no | = \\ \n such thing',
  },
  { kind: 'outcome', ...call, op: 'mcp.list', tool: undefined, result: 'failed', status: 502, code: 'upstream_error' },
  { kind: 'message', ...call, method: 'sampling/createMessage' },
  { kind: 'approval', approval: 'a-1', event: 'granted', by: 'bob', ...call },
  { kind: 'revocation', source: 'breakglass', revocation: 'r-1', scope: 'agent', action: 'kill', by: 'root' },
  { kind: 'revocation', source: 'file', action: 'loaded', entries: 3, cut: 0 },
  { kind: 'admin', action: 'POST /v1/revocations', path: '/v1/revocations', by: 'root', status: 201 },
  { kind: 'checkpoint', upTo: 5, head: 'h', size: 6, root: 'r', jws: 'j', note: 'n' },
  { kind: 'gap', count: 3, reason: 'ENOSPC' },
  { kind: 'recovered', reason: 'torn', bytes: 10 },
  { kind: 'alert', alert: 'budget.threshold', budget: 'b', scope: 'agent' },
].map((rec, seq) => recordOf(rec, seq))

const kindOf = ({ rec }: AuditRecord) => String(rec.kind)

test('json is the line of the ledger', () => {
  // Shows D3.auditSinks.format.json.
  for (const record of records) assert.equal(formatOf('json', options)(record), record.text)
})

test('rfc5424-json is a message of RFC 5424 with number, hash and the ledger line', () => {
  // Shows D3.auditSinks.format.rfc5424-json, D3.auditSinks.facility, D3.auditSinks.sdId.
  for (const record of records) {
    const parsed = parseSyslog(formatOf('rfc5424-json', { facility: 20, sdId: 'audit@1' })(record))
    assert.equal(parsed.message, record.text)
    assert.deepEqual(parsed.data, { id: 'audit@1', params: { seq: String(record.seq), hash: record.hash } })
    assert.equal(parsed.facility, 20)
    assert.deepEqual([parsed.timestamp, parsed.hostname, parsed.appName], [record.rec.at, 'gw-1', 'plat-gateway'])
    assert.equal(parsed.msgId, kindOf(record))
  }
  const severities = new Map(
    records.map((record) => [kindOf(record), parseSyslog(formatOf('rfc5424-json', options)(record)).severity]),
  )
  assert.deepEqual(
    ['outcome', 'decision', 'alert', 'gap'].map((kind) => severities.get(kind)),
    [6, 4, 4, 3],
  )
})

test('with any names of replica and record the message is valid, and its length is counted in bytes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (replica, tool) => {
      const record = recordOf({ kind: 'outcome', replica, tool })
      const message = formatOf('rfc5424-json', options)(record)
      assert.equal(parseSyslog(message).message, record.text)
      const frame = Buffer.from(`${Buffer.byteLength(message)} ${message}`)
      const { messages, rest } = parseFrames(Buffer.concat([frame, frame]))
      assert.deepEqual([...messages, rest.length], [message, message, 0])
    }),
  )
})

test('over syslog every format is a message of RFC 5424', () => {
  for (const [name, inside] of [
    ['json', (record: AuditRecord) => record.text],
    ['cef', cef],
    ['ocsf', ocsf],
  ] as const) {
    for (const record of records) {
      const parsed = parseSyslog(syslogFormatOf(name, options)(record))
      assert.equal(parsed.message, inside(record))
      assert.equal(parsed.data, null)
    }
  }
})

/** Parses CEF by its rules: a backslash escapes the next character, or encodes a line feed. */
function parseCef(text: string) {
  const fields = ['']
  let at = 0
  for (; at < text.length && fields.length < 8; at++) {
    if (text[at] === '\\') fields.push((fields.pop() ?? '') + text[++at])
    else if (text[at] === '|') fields.push('')
    else fields.push((fields.pop() ?? '') + text[at])
  }
  const extension: Record<string, string> = {}
  // Keys are letters and digits; a value ends before the next key, and contains equals signs only escaped.
  const keys = Array.from(text.slice(at).matchAll(/(?:^| )([A-Za-z0-9]+)=/g))
  for (const [index, key] of keys.entries()) {
    const from = key.index + key[0].length
    const value = text.slice(at).slice(from, keys[index + 1]?.index)
    extension[key[1] ?? ''] = value.replace(/\\([\\=nr])/g, (_, mark) => ({ n: '\n', r: '\r' })[String(mark)] ?? mark)
  }
  return { fields: fields.slice(0, 7), extension }
}

test('cef has a head of seven fields, and only keys of its dictionary', () => {
  // Shows D3.auditSinks.format.cef.
  const refused = records[3]
  assert.ok(refused !== undefined)
  const { fields, extension } = parseCef(cef(refused))
  assert.deepEqual(fields, [
    'CEF:0',
    'plat',
    'plat-gateway',
    '1',
    'decision',
    'decision mcp.call notes/add_note: deny',
    '6',
  ])
  assert.deepEqual(extension, {
    rt: String(Date.parse('2026-03-01T12:00:00.123Z')),
    externalId: '3',
    cs1Label: 'hash',
    cs1: refused.hash,
    act: 'deny',
    cat: 'mcp.call',
    destinationServiceName: 'notes',
    dvchost: 'gw-1',
    reason: 'no | = \\ \n such thing',
    sntdom: 'default',
    sourceServiceName: 'assistant',
    suser: 'alice',
    cs2Label: 'session',
    cs2: 's-1',
    cs3Label: 'call',
    cs3: 'c-1',
    cs4Label: 'policy',
    cs4: 'default/p',
    cs5Label: 'rule',
    cs5: 'r',
    cs6Label: 'tool',
    cs6: 'add_note',
  })
  for (const record of records) assert.equal(parseCef(cef(record)).fields.length, 7)
})

test('cef has the number of hits of data-loss prevention in a call', () => {
  const dlp = [
    { action: 'redact', count: 2, detector: 'iban', direction: 'arguments' },
    { action: 'audit', count: 1, detector: 'email', direction: 'response' },
  ]
  const { extension } = parseCef(cef(recordOf({ kind: 'outcome', ...call, dlp })))
  assert.deepEqual([extension.cn3Label, extension.cn3], ['dlpHits', '3'])
  assert.equal(parseCef(cef(recordOf({ kind: 'outcome', ...call }))).extension.cn3Label, undefined)
})

test('texts cannot break out of their fields in cef, and decode unchanged', () => {
  const text = fc
    .oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[|\\= \n\ra]{1,12}$/))
    .filter((one) => one !== '')
  fc.assert(
    fc.property(text, text, text, (server, reason, user) => {
      const written = cef(recordOf({ kind: 'decision', server, reason, user, action: 'deny' }))
      assert.ok(!/[\r\n]/.test(written))
      const { fields, extension } = parseCef(written)
      assert.equal(fields[5], `decision ${server}: deny`.replace(/[\r\n]+/g, ' '))
      assert.deepEqual([extension.destinationServiceName, extension.reason, extension.suser], [server, reason, user])
      assert.deepEqual([extension.act, extension.externalId], ['deny', '7'])
    }),
    { numRuns: 500 },
  )
})

test('ocsf writes events of the published classes, with the ledger line as raw data', () => {
  // Shows D3.auditSinks.format.ocsf.
  const classes = new Map<string, number>()
  for (const record of records) {
    const event = JSON.parse(ocsf(record))
    classes.set(kindOf(record), assertOcsf(event))
    assert.equal(event.raw_data, record.text)
    assert.deepEqual([event.metadata.uid, event.metadata.sequence], [record.hash, record.seq])
    assert.equal(event.metadata.version, '1.6.0')
  }
  assert.deepEqual(Object.fromEntries(classes), {
    config: 6002,
    intent: 6003,
    outcome: 6003,
    decision: 6003,
    message: 6003,
    approval: 6003,
    revocation: 6003,
    admin: 6003,
    checkpoint: 6002,
    gap: 2004,
    recovered: 2004,
    alert: 2004,
  })
})

test('ocsf events name the caller, the operation and the result', () => {
  const [, , outcome, decision, list] = records.map((record) => JSON.parse(ocsf(record)))
  assert.deepEqual(outcome.actor, { app_name: 'assistant', session: { uid: 's-1' }, user: { name: 'alice' } })
  assert.deepEqual(
    [outcome.api.operation, outcome.api.service.name, outcome.resources[0].name],
    ['mcp.call', 'notes', 'add_note'],
  )
  assert.deepEqual([outcome.status_id, outcome.activity_id, outcome.activity_name], [1, 99, 'mcp.call'])
  assert.deepEqual([decision.status_id, decision.status_code, decision.severity_id], [2, 'policy_denied', 3])
  assert.deepEqual(
    [list.status_id, list.activity_id, list.api.response],
    [2, 2, { code: 502, error: 'upstream_error' }],
  )
})

test('for any record the ocsf event is valid for its class', () => {
  const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant({ a: [1] }))
  const members = [
    'op',
    'server',
    'tool',
    'user',
    'agent',
    'session',
    'result',
    'status',
    'code',
    'reason',
    'action',
    'event',
    'by',
    'alert',
    'call',
  ]
  const rec = fc.record(Object.fromEntries(members.map((name) => [name, value])), { requiredKeys: [] })
  const kind = fc.constantFrom(...records.map(kindOf), 'anchor', 'unheard-of')
  fc.assert(
    fc.property(kind, rec, (name, own) => {
      assertOcsf(JSON.parse(ocsf(recordOf({ ...own, kind: name }))))
    }),
  )
})

test('udm names time, party and verdict, and holds the whole record', () => {
  for (const record of records) {
    const event = JSON.parse(udm(record))
    assert.equal(event.metadata.eventType, 'GENERIC_EVENT')
    assert.equal(event.metadata.eventTimestamp, record.rec.at)
    assert.equal(event.metadata.productLogId, record.hash)
    assert.ok(event.principal.application !== '')
    assert.deepEqual(
      event.additional,
      JSON.parse(JSON.stringify({ seq: record.seq, hash: record.hash, rec: record.rec })),
    )
  }
  const refused = JSON.parse(udm(records[3] ?? recordOf({})))
  assert.deepEqual(refused.securityResult[0].action, ['BLOCK'])
  assert.deepEqual([refused.principal.user.userid, refused.target.resource.name], ['alice', 'add_note'])
})
