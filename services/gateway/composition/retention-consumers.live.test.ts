import assert from 'node:assert/strict'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { basename, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { receiptBeside, verifyEvidence, verifyLedger, verifyReceipt } from '@plat/ledger'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { freePort, listening, tempFolder } from '@plat/testkit/local'
import { startLog } from '@plat/testkit/transparency-log'
import { keyFiles } from '../evidence/audit/testing/keys.ts'
import { type S3Server, startS3 } from '../evidence/audit-sinks/testing/s3.ts'
import { EvidenceMaker } from '../evidence/objects/make.ts'
import { EvidenceStore } from '../evidence/objects/store.ts'
import { createOffline } from '../evidence/offline/index.ts'
import { createTransparency } from '../evidence/transparency/index.ts'
import { TOKEN } from '../testing/started.ts'
import { DAY_MS, type Fixture, fill, listed, setUp, stillHere, untilPass } from './testing/retention.ts'

/** A segment of this age may leave; a day would be 86,400 turns of the timers of an edge. */
const LEAST_AGE_MS = 660_000

function waiting({ gauge }: Fixture, reason: string): number {
  return gauge(`segments_waiting\\{reason="${reason}"\\}`)
}

/** Lets five passes run, and returns the files of these segments that are here. */
async function afterPasses({ auditPath, clock }: Fixture, segments: Parameters<typeof stillHere>[1]) {
  for (let pass = 0; pass < 5; pass++) await clock.advance(60_000)
  return stillHere(auditPath, segments)
}

async function evidenceOf({ auditPath, audit }: Fixture, seq: number) {
  const dir = join(tempFolder(), 'evidence')
  const store = new EvidenceStore(dir)
  const parts = { auditPath, checkpoints: audit.checkpoints, store, clock: systemClock, ids: systemIds(systemClock) }
  const maker = new EvidenceMaker({ ...parts, maxBytes: 10_000_000 })
  const { head } = await maker.make({ about: {}, from: seq, to: seq, by: 'token:admin' })
  return await store.bytes(head.id)
}

/** A folder with the files of the ledger and all archived segments. */
async function restored({ auditPath }: Fixture, s3: S3Server): Promise<string> {
  const folder = join(tempFolder(), 'restored')
  mkdirSync(folder)
  cpSync(dirname(auditPath), folder, { recursive: true })
  for (const { archive } of await listed(auditPath)) {
    if (archive === null) continue
    const { pathname } = new URL(archive)
    writeFileSync(join(folder, basename(pathname)), s3.objects.get(pathname) ?? '')
  }
  return join(folder, basename(auditPath))
}

interface Door {
  readonly url: string
  state: 'down' | 'slow' | 'open'
  /** Requests that wait. */
  readonly held: readonly unknown[]
  admits: () => boolean
  open(): void
}

/**
 * Passes requests on. A server that is down receives nothing; one that is slow receives a request once it is open again, or while `admits` returns true.
 */
async function startDoor(t: TestContext, to: string) {
  const held: (() => void)[] = []
  const server = createServer((incoming, outgoing) => {
    const { method, headers, url } = incoming
    const pass = () => {
      const passed = request(`${to}${url}`, { method, headers }, (reply) => {
        outgoing.writeHead(reply.statusCode ?? 502, reply.headers)
        reply.pipe(outgoing)
      })
      passed.on('error', () => outgoing.destroy())
      incoming.pipe(passed)
    }
    if (door.state === 'down') incoming.socket.destroy()
    else if (door.state === 'open' || door.admits()) pass()
    else held.push(pass)
  })
  const door: Door = {
    ...{ url: `http://127.0.0.1:${await listening(server)}`, held },
    state: 'down',
    admits: () => false,
    open() {
      door.state = 'open'
      for (const pass of held.splice(0)) pass()
    },
  }
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return door
}

test('no segment leaves before the transparency log has it: dead, slow, and back; then all proofs hold', async (t) => {
  const [s3, log] = [await startS3(t, 'secret'), await startLog(t)]
  const door = await startDoor(t, log.url)
  let anchored = () => -1
  const fixture = await setUp(t, { archive: 's3', days: 1, s3, anchors: () => anchored() })
  const { auditPath, audit, clock, key, dialer, shared } = fixture
  const { checkpoints } = audit
  const ledger = audit.ledgers.of('')
  const transparencyLog = {
    ...{ enabled: true, url: door.url, api: 'v1' as const, intervalSeconds: 60, publicKeyFiles: [log.keyFile] },
    ...{ timeoutSeconds: 5, jurisdiction: '' },
  }
  const anchors = await createTransparency({ ...shared, config: { transparencyLog }, checkpoints, ledger, dialer })
  t.after(() => anchors.close())
  anchored = () => anchors.anchored()
  const segments = await fill(fixture, 3)
  const seq = (segments[0]?.first ?? 0) + 5
  await checkpoints.last(true)
  const receipt = await receiptBeside(auditPath, seq)
  const evidence = await evidenceOf(fixture, seq)
  await clock.advance(DAY_MS + 3_600_000)
  fixture.start()
  await untilPass(fixture, () => waiting(fixture, 'anchors') >= 3, 'the wait for an anchor')
  assert.equal((await afterPasses(fixture, segments)).length, segments.length)
  door.state = 'slow'
  await untilPass(fixture, () => door.held.length > 0, 'a request that waits')
  assert.equal((await afterPasses(fixture, segments)).length, segments.length)
  door.open()
  await untilPass(fixture, () => stillHere(auditPath, segments).length === 0, 'all to leave')
  await anchors.close()
  // Archiving may have written a record after the last checkpoint.
  await checkpoints.last(true)
  const trust = { keys: [key.signer.publicKey], hmacKey: null }
  const found = verifyReceipt(receipt, trust)
  assert.ok(typeof found !== 'string' && found.signed === true)
  assert.ok(typeof (await verifyEvidence(evidence, { ...trust, logKeys: null })) !== 'string')
  const inputs = { beside: true, key: key.pub, logKey: log.keyFile, strict: true }
  const verified = await verifyLedger(auditPath, inputs)
  assert.equal(verified.exitCode, 0, verified.message)
  assert.ok(verified.anchors.signed > 0 && verified.anchors.signed === verified.anchors.found)
  const left = (await listed(auditPath)).filter(({ left }) => left !== null)
  const [first, last] = [left[0], left.at(-1)]
  const archive = left.length === 1 ? first?.archive : first?.archive?.replace(/[^/]*$/, '')
  assert.deepEqual(verified.archived, [{ first: 0, last: last?.last, archive }])
  const whole = await verifyLedger(await restored(fixture, s3), inputs)
  assert.deepEqual([whole.exitCode, whole.archived], [0, []], whole.message)
})

/** A collector of an edge, in its own process, and the edge's settings for it. */
async function withCollector(t: TestContext, edgeKey: string) {
  const [dir, hubKey, port] = [tempFolder(), await keyFiles(), await freePort()]
  const tokenFile = join(dir, 'token')
  writeFileSync(tokenFile, TOKEN)
  const start = async () => {
    const auditCollector = { enabled: true, edges: [{ id: 'north', publicKeyFiles: [edgeKey] }] }
    const config = { auditPath: join(dir, 'audit.jsonl'), auditCheckpointKey: hubKey.uri, auditCollector }
    const env = { PLAT_ADMIN_TOKEN: TOKEN }
    const hub = await startGatewayProcess({ servers: {}, env, config: { ...config, listen: `127.0.0.1:${port}` } })
    t.after(() => hub.close())
    return hub
  }
  const door = await startDoor(t, `http://127.0.0.1:${port}`)
  const forward = {
    ...{ url: door.url, tokenFile, caFile: '', jurisdiction: '' },
    ...{ intervalSeconds: 60, maxBackoffSeconds: 60, timeoutSeconds: 5 },
  }
  return { start, door, forward, keyFile: hubKey.pub }
}

test('no segment leaves before the collector of an edge has acknowledged it: dead, slow, back, and killed', async (t) => {
  let acknowledged = () => -1
  const fixture = await setUp(t, { archive: 'delete', bytes: 1, collector: () => acknowledged() })
  const { auditPath, audit, clock, key, dialer, shared } = fixture
  const { start, door, forward, keyFile } = await withCollector(t, key.pub)
  const offline = {
    ...{ enabled: true, edgeId: 'north', spoolDir: '', spoolMaxBytes: 1024 ** 3, fullPolicy: 'failClosed' as const },
    ...{ segmentMaxRecords: 10, sealIntervalSeconds: 60, collectorKeyFiles: [keyFile], forward, receiptDropDir: '' },
    ...{ disconnectedAfterSeconds: 300, maxRevocationStalenessSeconds: 0, highRiskTools: [], localApprovers: [] },
    approvals: 'deny' as const,
  }
  const { ledgers, ledgerId, signer } = audit
  const config = { offline, auditPath, revocationsFile: '' }
  const edge = await createOffline({ ...shared, config, ledgers, ledgerId, signer, dialer })
  t.after(() => edge.close())
  acknowledged = () => edge.acknowledged()
  const segments = await fill(fixture, 3)
  await audit.checkpoints.last(true)
  await clock.advance(LEAST_AGE_MS)
  fixture.start()
  await untilPass(fixture, () => waiting(fixture, 'collector') >= 3, 'the wait for the collector')
  assert.equal((await afterPasses(fixture, segments)).length, segments.length)
  const hub = await start()
  door.state = 'slow'
  // As far as it got: no more than what the first segment needs.
  door.admits = () => edge.acknowledged() < (segments[0]?.last ?? 0)
  await untilPass(fixture, () => stillHere(auditPath, segments).length < segments.length, 'the first one to leave')
  const received = segments.filter(({ last }) => last <= edge.acknowledged())
  assert.ok(received.length > 0 && received.length < segments.length)
  assert.deepEqual(
    await afterPasses(fixture, segments),
    segments.filter((one) => !received.includes(one)).map(({ file }) => file),
  )
  door.open()
  await untilPass(fixture, () => stillHere(auditPath, segments).length === 0, 'all to leave')
  await hub.kill()
  const later = (await fill(fixture, 3)).filter(({ left }) => left === null)
  await audit.checkpoints.last(true)
  await clock.advance(LEAST_AGE_MS)
  await untilPass(fixture, () => waiting(fixture, 'collector') >= 1, 'the wait for a collector that was killed')
  const [first] = later.filter(({ first }) => first > acknowledged())
  assert.ok(first !== undefined)
  assert.ok((await afterPasses(fixture, later)).includes(first.file ?? ''))
  await start()
  await untilPass(fixture, () => stillHere(auditPath, later).length === 0, 'the later ones to leave')
  await audit.checkpoints.last(true)
  const verified = await verifyLedger(auditPath, { beside: true, key: key.pub, strict: true })
  assert.equal(verified.exitCode, 0, verified.message)
})
