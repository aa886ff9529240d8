import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { OpenLedger, openLedgerKey } from '@plat/testkit/open-ledger'
import { until } from '@plat/testkit/until'
import { problemsWith } from '../../testing/configured.ts'
import { started, TOKEN } from '../../testing/started.ts'

/** A gateway that follows the ledgers of clients each second. */
async function setUp(t: TestContext, anchors: readonly object[], auditPath = join(tempFolder(), 'audit.jsonl')) {
  const clientAudit = { anchors: anchors.map((anchor) => ({ intervalSeconds: 1, ...anchor })) }
  const { gateway } = await started(t, { auditPath, clientAudit }, true)
  const ends = { closed: false }
  const drain = async () => {
    if (!ends.closed) await gateway.drain()
    ends.closed = true
  }
  t.after(drain)
  const series = async (name: string, anchor: string) => {
    const response = await fetch(`${gateway.adminUrl}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })
    const pattern = new RegExp(`^plat_gateway_client_audit_${name}\\{anchor="${anchor}"\\} (\\S+)$`, 'm')
    return Number(pattern.exec(await response.text())?.[1])
  }
  const records = (kind: string) =>
    wholeLines(auditPath).flatMap((line) => {
      const { rec } = JSON.parse(line)
      return rec.kind === kind && rec.source === 'client' ? [rec] : []
    })
  return { auditPath, series, records, drain }
}

test('heads of client ledgers are anchored as records, and a rewritten ledger raises one alert until it is restored', async (t) => {
  // Shows D3.clientAudit.name, D3.clientAudit.file, D3.clientAudit.intervalSeconds, D3.metric.plat_gateway_client_audit_verified
  // and D3.metric.plat_gateway_client_audit_head_seq.
  const folder = tempFolder()
  const [file, other] = [join(folder, 'laptop.jsonl'), join(folder, 'ci.jsonl')]
  const ledger = new OpenLedger({ path: file }).append(10)
  const { series, records } = await setUp(t, [
    { name: 'laptop', file },
    { name: 'ci', file: other },
  ])
  await until(async () => (await series('verified', 'laptop')) === 1, 'the first head is anchored')
  assert.equal(await series('head_seq', 'laptop'), 9)
  assert.equal(await series('verified', 'ci'), 0)
  const [first] = records('anchor')
  assert.deepEqual([first.name, first.upTo, first.head, first.signed], ['laptop', 9, ledger.head.hash, false])
  new OpenLedger({ path: other }).append(3)
  ledger.append(5)
  await until(
    async () => (await series('head_seq', 'laptop')) === 14 && (await series('verified', 'ci')) === 1,
    'further heads are anchored',
  )
  const good = readFileSync(file)
  const changed = Buffer.from(good)
  changed.write('f', changed.indexOf('tool.call'))
  writeFileSync(file, changed)
  await until(async () => (await series('verified', 'laptop')) === 0, 'the ledger no longer verifies')
  assert.equal(await series('verified', 'ci'), 1)
  await until(() => records('alert').some(({ name }) => name === 'laptop'), 'the alert is recorded')
  const alerts = records('alert').filter(({ name }) => name === 'laptop')
  assert.deepEqual(
    alerts.map(({ alert, fault, reason }) => [alert, fault, reason]),
    [['ledger.fault', 'broken', 'record 0: the hash does not match the line']],
  )
  // The right file again, and more of it.
  writeFileSync(file, good)
  ledger.append(1)
  await until(async () => (await series('verified', 'laptop')) === 1, 'the restored ledger is anchored')
  assert.equal(await series('head_seq', 'laptop'), 15)
  assert.equal(records('alert').filter(({ name }) => name === 'laptop').length, 1)
})

test('a restarted gateway remembers what was anchored, and refuses to start without knowing it', async (t) => {
  const file = join(tempFolder(), 'client.jsonl')
  const ledger = new OpenLedger({ path: file }).append(10)
  const anchors = [{ name: 'a', file }]
  const first = await setUp(t, anchors)
  await until(async () => (await first.series('head_seq', 'a')) === 9, 'the head is anchored')
  const positions = `${first.auditPath}.client-audit.json`
  await until(() => existsSync(positions), 'the position is saved')
  await first.drain()
  const stored = wholeLines(file)
  writeFileSync(
    file,
    stored
      .slice(0, 5)
      .map((line) => `${line}\n`)
      .join(''),
  )
  const second = await setUp(t, anchors, first.auditPath)
  await until(() => second.records('alert').length === 1, 'the alert is recorded')
  assert.deepEqual(second.records('alert')[0].fault, 'truncated')
  assert.equal(await second.series('head_seq', 'a'), 9)
  await second.drain()
  writeFileSync(file, stored.map((line) => `${line}\n`).join(''))
  ledger.append(1)
  const third = await setUp(t, anchors, first.auditPath)
  await until(async () => (await third.series('head_seq', 'a')) === 10, 'the restored ledger is anchored')
  assert.deepEqual(
    third.records('anchor').map(({ upTo }) => upTo),
    [9, 10],
  )
  await third.drain()
  appendFileSync(positions, 'x')
  await assert.rejects(setUp(t, anchors, first.auditPath), /client-audit\.json is not a file of positions: restore it/)
})

test('keys are pinned, signatures are required and restarts are allowed as configured', async (t) => {
  // Shows D3.clientAudit.pubkey, D3.clientAudit.requireSigned and D3.clientAudit.allowRestarts.
  const folder = tempFolder()
  const { key, pubkey } = openLedgerKey()
  const path = (name: string) => join(folder, `${name}.jsonl`)
  new OpenLedger({ path: path('signed'), key }).append(4)
  new OpenLedger({ path: path('unsigned') }).append(4)
  new OpenLedger({ path: path('forged'), key: openLedgerKey().key }).append(4)
  new OpenLedger({ path: path('strict') }).append(4)
  const { series, records } = await setUp(t, [
    { name: 'signed', file: path('signed'), pubkey, requireSigned: true, allowRestarts: true },
    { name: 'unsigned', file: path('unsigned'), pubkey, requireSigned: true },
    { name: 'forged', file: path('forged'), pubkey },
    { name: 'strict', file: path('strict') },
  ])
  await until(
    async () => (await series('head_seq', 'signed')) === 3 && (await series('head_seq', 'strict')) === 3,
    'the valid ledgers are anchored',
  )
  await until(() => records('alert').length === 2, 'the others raise alerts')
  assert.deepEqual(
    records('alert').map(({ name, fault }) => [name, fault]),
    [
      ['unsigned', 'unsigned'],
      ['forged', 'signature'],
    ],
  )
  const before = records('anchor').find(({ name }) => name === 'signed')
  for (const name of ['signed', 'strict']) rmSync(path(name))
  new OpenLedger({ path: path('signed'), key }).append(2, { event: 'anew' })
  new OpenLedger({ path: path('strict') }).append(9, { event: 'anew' })
  await until(() => records('anchor').some(({ restart }) => restart === true), 'the restart is anchored')
  const anew = records('anchor').find(({ restart }) => restart === true)
  assert.deepEqual([anew.name, anew.upTo, anew.signed, anew.before], ['signed', 1, true, before.head])
  await until(() => records('alert').some(({ name }) => name === 'strict'), 'the other restart raises an alert')
  assert.equal(records('alert').find(({ name }) => name === 'strict').fault, 'replaced')
})

test('the configuration names what is missing', () => {
  const anchors = [{ name: 'a', file: '/a', requireSigned: true }]
  assert.deepEqual(problemsWith({ clientAudit: { anchors } }), [
    'clientAudit.anchors[0].pubkey: is required with requireSigned',
  ])
  const twice = [
    { name: 'a', file: '/a' },
    { name: 'a', file: '/b' },
  ]
  assert.match(problemsWith({ clientAudit: { anchors: twice } }).join(), /clientAudit\.anchors\[1\]\.name/)
})
