import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { zstdDecompressSync } from 'node:zlib'
import { verifyReceipt } from '@plat/ledger'
import type { GatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { ADMIN_TOKEN, TestGateways } from '@plat/testkit/postgres/gateways'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import { TestDisk } from '../testing/copied.ts'
import { keyFiles } from '../testing/keys.ts'

const PLAT = fileURLToPath(new URL('../../../../../apps/cli/bin/plat.mjs', import.meta.url))

const postgres = usePostgres()
const key = await keyFiles()
const shared = new TestGateways({
  postgres,
  prices: { version: 1, currency: 'EUR', id: 'p', tools: { 'default/notes/free': { perCall: '0.01' } } },
  config: { auditCheckpointKey: key.uri, auditCheckpointEvery: 5 },
})
const disks = [new TestDisk(), new TestDisk(), new TestDisk()]
const start = (disk: TestDisk | undefined, more: object = {}) =>
  shared.start({ auditPath: disk?.path ?? assert.fail(), ...more })

/** Runs a command for a gateway elsewhere, with the admin token; null: with no gateway. Resolves with its exit code and output. */
async function plat(gateway: GatewayProcess | null, ...args: string[]): Promise<{ code: number; text: string }> {
  const tokenFile = join(tempFolder(), 'token')
  await writeFile(tokenFile, ADMIN_TOKEN, { mode: 0o600 })
  const at = gateway === null ? [] : ['-admin-url', gateway.url, '-token-file', tokenFile]
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [PLAT, ...args, ...at])
    return { code: 0, text: stdout }
  } catch (error) {
    if (!(error instanceof Error) || !('stderr' in error) || !('stdout' in error) || !('code' in error)) throw error
    return { code: Number(error.code), text: `${error.stdout}${error.stderr}` }
  }
}

type Line = { readonly seq: number; readonly rec: Readonly<Record<string, unknown>> }

/** All items of a list of the admin API. */
async function all(gateway: GatewayProcess, path: string): Promise<Line[]> {
  const items: Line[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const more = cursor === '' ? '' : `${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`
    const { status, body } = await shared.admin(gateway, 'GET', `${path}${more}`)
    assert.equal(status, 200, JSON.stringify(body))
    items.push(...body.items)
    cursor = body.nextCursor
  }
  return items
}

const outcomes = (lines: readonly Line[]) => lines.filter(({ rec }) => rec.kind === 'outcome')

interface Display {
  readonly calls: number
  readonly timeline: number
  readonly search: number
}

/** A session that called all gateways, as one of them displays it. */
async function displayed(gateway: GatewayProcess, session: string): Promise<Display> {
  const { body } = await shared.admin(gateway, 'GET', `/sessions?session=${session}`)
  const timeline = outcomes(await all(gateway, `/sessions/${session}/timeline?limit=3`))
  const search = outcomes(await all(gateway, `/audit/records?session=${session}&limit=3`))
  return { calls: body.items[0]?.calls ?? 0, timeline: timeline.length, search: search.length }
}

async function showsAll(gateways: readonly GatewayProcess[], session: string, calls: number): Promise<void> {
  const whole = JSON.stringify({ calls, timeline: calls, search: calls })
  for (const gateway of gateways) {
    await until(
      async () => JSON.stringify(await displayed(gateway, session)) === whole,
      `${calls} calls at each gateway`,
    )
    const timesOf = async (order: string) =>
      (await all(gateway, `/audit/records?session=${session}&limit=3&order=${order}`)).map(({ rec }) => String(rec.at))
    const times = await timesOf('oldest')
    assert.deepEqual(times, times.toSorted())
    assert.deepEqual(await timesOf('newest'), times.toReversed())
  }
}

/** Costs at each gateway are those of the calls at all of them, counted once. */
async function costAll(gateways: readonly GatewayProcess[], session: string, calls: number): Promise<void> {
  for (const gateway of gateways) {
    const { body } = await shared.admin(gateway, 'GET', `/sessions?session=${session}`)
    assert.deepEqual(body.items[0]?.spent, { micros: calls * 10_000, currency: 'EUR' })
    const { code, text } = await plat(gateway, 'costs', '-o', 'json')
    assert.equal(code, 0, text)
    const [row] = JSON.parse(text).filter((one: { session: string }) => one.session.endsWith(session))
    assert.deepEqual([row?.calls, row?.costMicros], [calls, calls * 10_000])
  }
}

/** Copies what the fleet shows with one command, and verifies it with the public key alone, in processes that know nothing else. */
async function verifyFleet(gateway: GatewayProcess, ledgers: number): Promise<void> {
  const out = join(tempFolder(), 'pulled')
  const pulled = await plat(gateway, 'audit', 'pull', out)
  assert.equal(pulled.code, 0, pulled.text)
  const names = await readdir(out)
  assert.equal(names.length, ledgers, names.join())
  assert.ok(names.every((name) => !existsSync(join(out, name, 'audit.jsonl.jwks'))))
  const verified = await plat(null, 'audit', 'verify', out, '-key', key.pub)
  // 4: records after the last checkpoint.
  assert.ok(verified.code === 0 || verified.code === 4, verified.text)
  assert.equal(verified.text.match(/^valid/gm)?.length, ledgers, verified.text)
}

test('three gateways show one ledger, also after one lost its disk and one was rolled back', async () => {
  // Shows D3.audit.auditAcceptDivergedMirror.
  const gateways = [await start(disks[0]), await start(disks[1]), await start(disks[2])]
  const call = (gateway: GatewayProcess | undefined) => shared.call(gateway ?? assert.fail(), 'wandering', 'free')
  const [one, two, three] = gateways
  for (let turn = 0; turn < 4; turn++) for (const gateway of gateways) assert.equal((await call(gateway)).status, 200)
  await showsAll(gateways, 'wandering', 12)
  const replicas = await all(one ?? assert.fail(), '/audit/replicas')
  assert.deepEqual(
    replicas
      .map((replica) => ({ ...replica }))
      .map(({ replica, isHere, problem }: Record<string, unknown>) => [replica, isHere, problem]),
    [true, false, false].map((isHere) => [hostname(), isHere, null]),
  )
  await costAll(gateways, 'wandering', 12)
  await verifyFleet(two ?? assert.fail(), 3)
  await receiptOfOther(one ?? assert.fail(), String(Object(replicas[1]).ledgerId))

  // The second one loses its disk, and the third one is rolled back.
  await three?.kill()
  disks[2]?.save()
  const again = await start(disks[2])
  for (let turn = 0; turn < 4; turn++) assert.equal((await call(again)).status, 200)
  await showsAll([one ?? assert.fail()], 'wandering', 16)
  await again.kill()
  disks[2]?.restore()
  await two?.kill()
  disks[1]?.delete()
  const renewed = await start(disks[1])
  await assert.rejects(start(disks[2]), /does not continue its copy|exit/)
  const rebuilt = await start(disks[2], { auditAcceptDivergedMirror: true })
  for (const gateway of [renewed, rebuilt]) assert.equal((await call(gateway)).status, 200)
  const now = [one ?? assert.fail(), renewed, rebuilt]
  await showsAll(now, 'wandering', 18)
  await verifyFleet(one ?? assert.fail(), 3)
  const found = await all(renewed, '/audit/records?kind=recovered')
  assert.deepEqual(found.map(({ rec }) => rec.reason).toSorted(), ['diverged', 'no disk'])
})

async function receiptOfOther(gateway: GatewayProcess, ledgerId: string): Promise<void> {
  const path = `/audit/proof/1?replica=${ledgerId}`
  await until(
    async () => (await shared.admin(gateway, 'GET', path)).status === 200,
    'a checkpoint of the other replica',
  )
  const { body } = await shared.admin(gateway, 'GET', path)
  const found = verifyReceipt(body, { keys: [key.signer.publicKey], hmacKey: null })
  assert.ok(typeof found !== 'string' && found.signed === true && found.ledgerId === ledgerId, JSON.stringify(found))
}

test('a copy that was changed in the database is not shown as a ledger', async () => {
  // Shows D3.metric.plat_gateway_audit_copies_damaged.
  const [gateway, other] = [await start(new TestDisk()), await start(new TestDisk())]
  for (let turn = 0; turn < 3; turn++) assert.equal((await shared.call(other, 'changed', 'free')).status, 200)
  await showsAll([gateway], 'changed', 3)
  const [, { ledgerId } = { ledgerId: '' }] = (await shared.admin(other, 'GET', '/audit/replicas')).body.items
  const own = (await shared.admin(other, 'GET', '/audit/replicas')).body.items[0].ledgerId
  assert.notEqual(ledgerId, own)
  await other.kill()
  await postgres.rows(
    `UPDATE plat.ledger_chunk SET data = (SELECT data FROM plat.ledger_chunk WHERE ledger <> $1 AND first = 0 LIMIT 1)
       WHERE ledger = $1 AND first = 0`,
    [own],
  )
  const { status, body } = await shared.admin(gateway, 'GET', `/audit/records?replica=${own}`)
  assert.deepEqual([status, body.error], [503, 'state_unavailable'])
  assert.match(body.message, /not what was written: record/)
  const late = await start(new TestDisk())
  const problem = async () =>
    (await shared.admin(late, 'GET', '/audit/replicas')).body.items.find(
      (one: { ledgerId: string }) => one.ledgerId === own,
    )?.problem
  await until(async () => (await problem()) !== null, 'the problem of the copy')
  const metrics = await (await fetch(`${late.url}/metrics`)).text()
  assert.match(metrics, /^plat_gateway_audit_copies_damaged 1$/m)
  const pulled = await plat(gateway, 'audit', 'pull', join(tempFolder(), 'pulled'))
  assert.equal(pulled.code, 1)
  assert.match(pulled.text, /not what was written/)
})

const KILLS = 3

test('a gateway that is killed while it ships leaves neither a gap nor a duplicate', async () => {
  const disk = new TestDisk()
  for (let round = 0; round < KILLS; round++) {
    const gateway = await start(disk)
    const isOver = { now: false }
    const calls = Array.from({ length: 4 }, async () => {
      while (!isOver.now) await shared.call(gateway, `killed-${round}`, 'free').catch(() => {})
    })
    await until(async () => (await copiedText(disk)).length > 0, 'the first chunk')
    await sleep(700 + 400 * round)
    await gateway.kill()
    isOver.now = true
    await Promise.all(calls)
  }
  const last = await start(disk)
  assert.equal((await shared.call(last, 'killed', 'free')).status, 200)
  await shared.close(last)
  const text = readFileSync(disk.path, 'utf8')
  const copied = await copiedText(disk)
  assert.ok(text.startsWith(copied), 'the copy is not the beginning of the ledger')
  assert.equal(copied.split('\n').length, text.split('\n').length)
})

/** Lines of the chunks of a ledger, in order. */
async function copiedText({ path }: TestDisk): Promise<string> {
  const rows = await postgres.rows(
    'SELECT data FROM plat.ledger_chunk JOIN plat.ledger_copy USING (ledger) WHERE path = $1 ORDER BY first',
    [path],
  )
  return rows.map(({ data }) => zstdDecompressSync(data instanceof Uint8Array ? data : Buffer.alloc(0))).join('')
}
