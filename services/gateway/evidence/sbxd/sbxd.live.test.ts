import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { type SandboxDaemon, startSandboxDaemon } from '@plat/testkit/sandbox-daemon'
import { until } from '@plat/testkit/until'
import { problemsWith } from '../../testing/configured.ts'
import { started, TOKEN } from '../../testing/started.ts'

interface Setup {
  readonly sbxd: object
  readonly auditPath?: string
}

/** A gateway with a sandbox daemon. */
async function setUp(t: TestContext, { sbxd, auditPath = join(tempFolder(), 'audit.jsonl') }: Setup) {
  const { gateway, issuer } = await started(t, { auditPath, sbxd }, true)
  const ends = { closed: false }
  const drain = async () => {
    if (!ends.closed) await gateway.drain()
    ends.closed = true
  }
  t.after(drain)
  /** Lets a call be denied, which is a decision. */
  const call = () =>
    fetch(`${gateway.url}/mcp/notes`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${issuer.token({ scope: 'tools:notes' })}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'add', arguments: {} } }),
    })
  const series = async (name: string) => {
    const response = await fetch(`${gateway.adminUrl}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })
    const pattern = new RegExp(`^plat_gateway_sbxd_${name.replace(/[{}"]/g, '\\$&')} (\\S+)$`, 'm')
    return Number(pattern.exec(await response.text())?.[1] ?? 0)
  }
  const records = (kind: string) =>
    wholeLines(auditPath).flatMap((line) => {
      const { rec, seq, hash } = JSON.parse(line)
      return rec.kind === kind && rec.source === 'sbxd' ? [{ ...rec, seq, hash }] : []
    })
  return { auditPath, call, series, records, drain }
}

async function daemonFor(t: TestContext, own: object = {}): Promise<SandboxDaemon & { readonly ledgerPath: string }> {
  const ledgerPath = join(tempFolder(), 'sbxd.jsonl')
  const daemon = await startSandboxDaemon({ ledgerPath, ...own })
  t.after(() => daemon.close())
  return Object.assign(daemon, { ledgerPath })
}

function tokenFile(text = 'secret'): string {
  const path = join(tempFolder(), 'token')
  writeFileSync(path, `${text}\n`)
  return path
}

test('decisions are mirrored over a URL with a token, and over a unix socket', async (t) => {
  // Shows D3.sbxd.url, D3.sbxd.tokenFile, D3.sbxd.socket, D3.sbxd.mirrorDecisions and D3.metric.plat_gateway_sbxd_mirror_total.
  const socket = join(tempFolder(), 'd.sock')
  const [remote, local] = [await daemonFor(t, { token: 'secret' }), await daemonFor(t, { socket })]
  const overUrl = await setUp(t, { sbxd: { url: remote.url, tokenFile: tokenFile(), mirrorDecisions: true } })
  const overSocket = await setUp(t, { sbxd: { socket, mirrorDecisions: true } })
  for (const [daemon, { call, series }] of [
    [remote, overUrl],
    [local, overSocket],
  ] as const) {
    await call()
    await until(async () => daemon.decisions.length === 1, 'the decision is mirrored')
    await until(async () => (await series('mirror_total{outcome="ok"}')) === 1, 'it is counted')
    const [decision = {}] = daemon.decisions
    assert.deepEqual(
      [decision.server, decision.tool, decision.agent, typeof decision.action],
      ['notes', 'add', 'assistant', 'string'],
    )
    assert.equal(JSON.stringify(decision).includes('arguments'), false)
  }
})

test('the default socket is that of the user', async (t) => {
  // Shows D3.default.computed.sbxd.socket.
  const before = process.env.XDG_RUNTIME_DIR
  const folder = tempFolder()
  process.env.XDG_RUNTIME_DIR = folder
  t.after(() => {
    if (before === undefined) delete process.env.XDG_RUNTIME_DIR
    else process.env.XDG_RUNTIME_DIR = before
  })
  const daemon = await daemonFor(t, { socket: join(folder, 'plat-sbxd.sock') })
  const { call } = await setUp(t, { sbxd: { mirrorDecisions: true } })
  await call()
  await until(() => daemon.decisions.length === 1, 'the decision is mirrored')
})

test('a daemon that does not respond holds no call, and decisions beyond the queue are dropped and counted', async (t) => {
  // Shows D3.label.plat_gateway_sbxd_mirror_total.outcome.ok, D3.label.plat_gateway_sbxd_mirror_total.outcome.dropped,
  // D3.label.plat_gateway_sbxd_mirror_total.outcome.error.
  // Shows D3.sbxd.queueSize.
  const daemon = await daemonFor(t)
  const held = Promise.withResolvers<boolean>()
  t.after(() => held.resolve(false))
  daemon.fault = () => held.promise
  const { call, series } = await setUp(t, {
    sbxd: { url: daemon.url, tokenFile: tokenFile(), mirrorDecisions: true, queueSize: 3 },
  })
  for (let index = 0; index < 8; index++) assert.ok((await call()).status > 0)
  await until(async () => (await series('mirror_total{outcome="dropped"}')) === 5, 'the overflow is counted')
  daemon.fault = null
  held.resolve(false)
  await until(async () => (await series('mirror_total{outcome="ok"}')) === 3, 'the queue is sent')
  // A decision that the daemon refuses is an error at once, and the next ones are sent.
  daemon.fault = (_, response) => {
    response.writeHead(400).end()
    return true
  }
  await call()
  await until(async () => (await series('mirror_total{outcome="error"}')) === 1, 'the refusal is counted')
  daemon.fault = (_, response) => {
    daemon.fault = null
    response.destroy()
    return true
  }
  await call()
  await until(async () => (await series('mirror_total{outcome="ok"}')) === 4, 'a lost connection is tried again')
})

test('both ledgers anchor each other, and each anchor is verified', async (t) => {
  // Shows D3.sbxd.anchorIntervalSeconds, D3.metric.plat_gateway_sbxd_audit_verified and D3.metric.plat_gateway_sbxd_audit_head_seq.
  const daemon = await daemonFor(t)
  for (let index = 0; index < 5; index++) daemon.record({ event: 'started' })
  const sbxd = { url: daemon.url, tokenFile: tokenFile(), anchorIntervalSeconds: 1 }
  const { series, records, auditPath } = await setUp(t, { sbxd })
  await until(() => records('anchor').length >= 2, 'two heads are anchored')
  const [first, second] = records('anchor')
  assert.equal(first.upTo, 5)
  const lines = wholeLines(daemon.ledgerPath).map((line) => JSON.parse(line))
  assert.equal(lines[5].hash, first.head)
  const { ledgerId } = JSON.parse(wholeLines(auditPath)[0] ?? '').rec
  // The daemon's second anchor is the record by which the gateway anchored the first one.
  assert.deepEqual(lines[second.upTo].entry.anchor, { ledgerId, seq: first.seq, hash: first.hash })
  assert.equal(await series('audit_verified'), 1)
  assert.ok((await series('audit_head_seq')) >= 6)
})

test('a daemon that changes, forgets or forges its ledger does not verify', async (t) => {
  const cases: Readonly<Record<string, readonly [(lines: string[]) => string[], string]>> = {
    forgets: [(lines) => lines.slice(0, 2), 'truncated'],
    changes: [(lines) => lines.with(1, lines[1]?.replace('started', 'stopped') ?? ''), 'broken'],
  }
  for (const [name, [change, fault]] of Object.entries(cases)) {
    const daemon = await daemonFor(t)
    for (let index = 0; index < 5; index++) daemon.record({ event: 'started' })
    const sbxd = { url: daemon.url, tokenFile: tokenFile(), anchorIntervalSeconds: 1 }
    const first = await setUp(t, { sbxd })
    await until(() => records(first).length >= 1, 'a head is anchored')
    await first.drain()
    await daemon.close()
    writeFileSync(
      daemon.ledgerPath,
      change(wholeLines(daemon.ledgerPath))
        .map((line) => `${line}\n`)
        .join(''),
    )
    const again = await startSandboxDaemon({ ledgerPath: daemon.ledgerPath })
    t.after(() => again.close())
    const second = await setUp(t, { sbxd: { ...sbxd, url: again.url }, auditPath: first.auditPath })
    await until(() => second.records('alert').length === 1, `${name}: the alert is recorded`)
    assert.equal(second.records('alert')[0].fault, fault, name)
    assert.equal(await second.series('audit_verified'), 0)
  }
  const liar = await daemonFor(t)
  liar.fault = ({ path }, response) => {
    if (path !== '/v1/ledger/anchors') return false
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(liar.record({ event: 'nothing' })))
    return true
  }
  const sbxd = { url: liar.url, tokenFile: tokenFile(), anchorIntervalSeconds: 1 }
  const lying = await setUp(t, { sbxd })
  await until(() => lying.records('alert').length === 1, 'the lie is recorded')
  assert.equal(lying.records('alert')[0].fault, 'unanchored')
  assert.deepEqual(lying.records('anchor'), [])
})

const records = ({ records: of }: { records(kind: string): readonly object[] }) => of('anchor')

test('hostile responses of a daemon are faults, and an unreachable one is reported once', async (t) => {
  const daemon = await daemonFor(t)
  const { records: of, series } = await setUp(t, {
    sbxd: { url: daemon.url, tokenFile: tokenFile(), anchorIntervalSeconds: 1 },
  })
  await until(() => of('anchor').length >= 1, 'a head is anchored')
  const bodies = ['{"seq":-1}', 'x'.repeat(5_000_000), '{"seq":9007199254740991}']
  for (const body of bodies) {
    daemon.fault = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(body)
      return true
    }
    await until(async () => (await series('audit_verified')) === 0, 'it does not verify')
    daemon.fault = null
    await until(async () => (await series('audit_verified')) === 1, 'it verifies again')
  }
  const before = of('alert').length
  assert.ok(before >= bodies.length - 1)
  assert.ok(of('alert').every(({ fault }) => fault === 'unreadable' || fault === 'truncated' || fault === 'broken'))
})

test('a socket of another user is not used', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('needs root')
  const { chownSync } = await import('node:fs')
  const socket = join(tempFolder(), 'd.sock')
  const daemon = await daemonFor(t, { socket })
  chownSync(socket, 12345, 12345)
  const { records: of } = await setUp(t, { sbxd: { socket, anchorIntervalSeconds: 1 } })
  await until(() => of('alert').length === 1, 'the alert is recorded')
  assert.match(of('alert')[0].reason, /belongs to another user/)
  assert.equal(readFileSync(daemon.ledgerPath, { encoding: 'utf8', flag: 'a+' }), '')
  rmSync(daemon.ledgerPath)
})

test('a URL needs a token', () => {
  assert.deepEqual(problemsWith({ sbxd: { url: 'https://s.example' } }), ['sbxd.tokenFile: is required with sbxd.url'])
})
