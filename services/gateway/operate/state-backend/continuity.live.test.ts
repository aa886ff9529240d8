import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { GatewayProcess } from '@plat/testkit/gateway'
import { ADMIN_TOKEN, TestGateways } from '@plat/testkit/postgres/gateways'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'

const postgres = usePostgres()
/** Calls that count in a rate limit and reached the server. */
let countedCalls = 0
const shared = new TestGateways({
  postgres,
  rules: [
    {
      name: 'rate',
      action: 'allow',
      match: { tools: ['rated'] },
      rateLimit: { count: 1_000_000, seconds: 100_000_000, per: 'session' },
    },
    { name: 'all', action: 'allow' },
  ],
  stateBackend: { leader: { retryMillis: 200 } },
  onCall: ({ rated }) => void (rated === true && countedCalls++),
})
const start = (auditPath: string) => shared.start({ auditPath })
const statusOfCall = async (gateway: GatewayProcess) => (await shared.call(gateway, 's', 'free')).status

async function ready({ url }: GatewayProcess): Promise<string> {
  const response = await fetch(`${url}/readyz`)
  return `${response.status} ${await response.text()}`
}

const PLAT = fileURLToPath(new URL('../../../../apps/cli/bin/plat.mjs', import.meta.url))

/** Runs `plat state adopt` as an operator does. Resolves with what it prints; rejects with its exit code and standard error. */
async function adopt({ url }: GatewayProcess): Promise<string> {
  const env = {
    PLAT_GATEWAY_URL: url,
    PLAT_IDENTITY_URL: url,
    PLAT_BROKER_TOKEN: 'none',
    PLAT_ADMIN_TOKEN: ADMIN_TOKEN,
  }
  const home = join(shared.dir, 'operator')
  await mkdir(join(home, '.plat'), { recursive: true, mode: 0o700 })
  const lines = Object.entries(env).map(([key, value]) => `${key}=${value}\n`)
  await writeFile(join(home, '.plat/env'), lines.join(''), { mode: 0o600 })
  return (await promisify(execFile)(process.execPath, [PLAT, 'state', 'adopt', '-dir', home])).stdout
}

/** `npm run long -- -only restored` sets more. */
const RESTORES = Number(process.env.PLAT_TEST_RESTORES ?? 1)
/** Denied calls of each gateway, in sequence, before the adoption. */
const DENIED_CALLS = 50
const LOAD_PAUSE_MS = 10

/** Calls a gateway repeatedly, with and without counting, until it is closed or the test ends. */
class Caller {
  readonly gateway: GatewayProcess
  /** Statuses since the last `reset`, of calls that began after it. */
  statuses: number[] = []
  #isOver = false
  readonly #done: Promise<void>

  constructor(gateway: GatewayProcess, session: string) {
    this.gateway = gateway
    this.#done = this.#run(session)
  }

  reset(): void {
    this.statuses = []
  }

  /** Rejects when a call got no response. */
  async end(): Promise<void> {
    this.#isOver = true
    await this.#done
  }

  async #run(session: string): Promise<void> {
    for (let calls = 0; !this.#isOver; calls++) {
      const { statuses } = this
      const isRated = calls % 2 === 1
      const { status } = await shared.call(this.gateway, session, isRated ? 'rated' : 'free', { rated: isRated })
      statuses.push(status)
      await sleep(LOAD_PAUSE_MS)
    }
  }
}

const isLost = async ({ url }: GatewayProcess) =>
  /^plat_gateway_state_lost 1$/m.test(await (await fetch(`${url}/metrics`)).text())

/** Resolves when each gateway lets calls pass. */
async function untilPassing(callers: readonly Caller[], what: string): Promise<void> {
  for (const caller of callers) caller.reset()
  await until(() => callers.every(({ statuses }) => statuses.slice(-2).join() === '200,200'), what)
}

/** Restores an older copy of the database while all gateways are called and one more starts. */
async function loseAndAdopt(callers: Caller[], round: number): Promise<void> {
  await postgres.save()
  await untilPassing(callers, 'calls after the copy')
  const [one, other] = callers.map(({ gateway }) => gateway)
  assert.ok(one !== undefined && other !== undefined)
  await assert.rejects(adopt(one), {
    code: 1,
    stderr: /the state database has lost nothing: there is nothing to adopt/,
  })
  const target = { session: 'default/assistant/gone' }
  const revoke = async () => (await shared.admin(one, 'POST', '/revocations', { target })).status === 201
  await until(revoke, 'a revocation that the copy lacks')
  await postgres.restore()
  const counted = countedCalls
  callers.push(new Caller(await start(join(shared.dir, `late-${round}.jsonl`)), `late-${round}`))
  const gateways = callers.map(({ gateway }) => gateway)
  await until(async () => (await Promise.all(gateways.map(isLost))).every(Boolean), 'every gateway to see the loss')
  for (const text of await Promise.all(gateways.map(ready))) assert.match(text, /^503 .*state database/)
  // The one that started late has never allowed a call.
  for (const caller of callers.slice(0, -1)) caller.reset()
  await until(() => callers.every(({ statuses }) => statuses.length >= DENIED_CALLS), 'the denied calls')
  const denied = callers.map(({ statuses }) => [...new Set(statuses)])
  assert.deepEqual(denied, Array(callers.length).fill([503]))
  assert.equal(countedCalls, counted, 'a call was counted in the older copy')
  assert.equal((await shared.admin(one, 'POST', '/revocations', { target })).status, 503)
  assert.equal(await adopt(other), 'the gateways go on with the state database as it is\n')
  await untilPassing(callers, 'calls after the adoption')
  await until(
    async () => (await Promise.all(gateways.map(ready))).every((text) => text.startsWith('200')),
    'every gateway',
  )
}

test('when the database becomes an older copy under load three gateways deny every call until plat state adopt', async (t) => {
  const paths = ['one', 'other', 'third'].map((name) => join(shared.dir, `${name}.jsonl`))
  const gateways = await Promise.all(paths.map(start))
  const callers = gateways.map((gateway, at) => new Caller(gateway, `s${at}`))
  t.after(() => Promise.allSettled(callers.map((caller) => caller.end())))
  await untilPassing(callers, 'the first calls')
  for (let round = 0; round < RESTORES; round++) {
    await loseAndAdopt(callers, round)
    const late = callers.pop() ?? assert.fail()
    await late.end()
    await shared.close(late.gateway)
  }
  await Promise.all(callers.map((caller) => caller.end()))
  const recorded = await readFile(paths[1] ?? '', 'utf8')
  // One record before each adoption and one after.
  assert.equal(recorded.match(/state:adopt/g)?.length, 2 * RESTORES)
})

test('a gateway does not start on a ledger that ends below the head in the database', async () => {
  const path = join(shared.dir, 'cut.jsonl')
  const first = await start(path)
  await until(async () => (await statusOfCall(first)) === 200, 'a call')
  assert.equal(await statusOfCall(first), 200)
  await shared.close(first)
  const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1)
  await writeFile(path, `${lines.slice(0, -1).join('\n')}\n`)
  // Anyone who can write to the disk can truncate the ledger and remove the file beside it.
  await rm(`${path}.head`)
  const last = lines.length - 1
  // Its copy would be refused first.
  await assert.rejects(start(path), new RegExp(`which ends at record ${last} .* it ends at record ${last - 1}\\.`))
  await postgres.rows('DELETE FROM plat.ledger_copy WHERE path = $1', [path])
  await assert.rejects(
    start(path),
    new RegExp(
      `cut\\.jsonl ends at record ${last - 1}, but record ${last} was durable \\(its row in "plat"\\.ledger_head`,
    ),
  )
  await writeFile(path, `${lines.join('\n')}\n`)
  assert.equal(await statusOfCall(await start(path)), 200)
})
