import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { GatewayProcess } from '@plat/testkit/gateway'
import { backendsOf, crash, whilePaused } from '@plat/testkit/postgres/backends'
import { TestGateways } from '@plat/testkit/postgres/gateways'
import { PostgresProxy } from '@plat/testkit/postgres/proxy'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'

const REPLICAS = 3

/** `npm run long -- -only approvals` sets more. */
const ROUNDS = Number(process.env.PLAT_TEST_APPROVAL_ROUNDS ?? 3)
const CALLS_PER_REPLICA = 6
const CALLS = REPLICAS * CALLS_PER_REPLICA

/** `npm run long -- -only counting` sets more. */
const SECONDS = Number(process.env.PLAT_TEST_COUNTING_SECONDS ?? 5)
const CALLERS = 9
/** Delay between two calls of one caller, in milliseconds. */
const PAUSE_MS = 10
/** Number of concurrent sessions. */
const SESSIONS = 2
/** Calls that the caps of a session allow. */
const CAPS = { paid: 50, rated: 20 } as const
const TOOLS = ['paid', 'rated'] as const
type Tool = (typeof TOOLS)[number]
/** Refusals for each cap after which a session is replaced by a new one. */
const REFUSED_MAX = 10
const A_LONG_WINDOW = 100_000_000
const MICROS_PER_CALL = 10_000
/** Longer than a gateway waits for a batch: a paused process then runs it after the gateway's timeout. */
const PAUSED_MS = 4_000
/** Number of lost responses per connection, and the time for them, in milliseconds. */
const LOSSES = 25
const LOSING_MS = 50
/** Number of sessions with locked counters: more than the connections of a gateway. */
const LOCKED = 6
/** Calls of another session that each gateway must allow meanwhile. */
const FREE_CALLS = 5
/** Maximum time for holds to end after the last fault, in milliseconds. */
const SETTLED_MS = 60_000
/** Error codes allowed for calls. */
const REFUSALS: ReadonlySet<unknown> = new Set([
  null,
  'budget_exceeded',
  'rate_limited',
  'state_unavailable',
  'revocations_unavailable',
  'cut',
])

/** Calls that reached the server, by the name in their arguments. */
const executed = new Map<string, number>()
const postgres = usePostgres()
const proxy = new PostgresProxy(postgres)
/** Never resolves: the gateways of calls with the argument `stuck` are killed first. */
const stuckForever = Promise.withResolvers<void>()
const shared = new TestGateways({
  postgres,
  dsn: proxy.dsn,
  rules: [
    { name: 'ask', action: 'require_approval', match: { tools: ['wipe'] }, reason: 'a person decides' },
    {
      name: 'rate',
      action: 'allow',
      match: { tools: ['rated'] },
      rateLimit: { count: CAPS.rated, seconds: A_LONG_WINDOW, per: 'session' },
    },
    { name: 'all', action: 'allow' },
  ],
  prices: { version: 1, currency: 'EUR', id: 'p', tools: { 'default/notes/paid': { perCall: '0.01' } } },
  config: { sessionBudgetUSD: (CAPS.paid * MICROS_PER_CALL) / 1_000_000 },
  stateBackend: { schema: 'replicas', maxConns: 3, leader: { retryMillis: 200 } },
  onCall({ name, stuck }) {
    executed.set(String(name), (executed.get(String(name)) ?? 0) + 1)
    return stuck === true && stuckForever.promise
  },
})
let gateways: GatewayProcess[] = []
before(async () => {
  postgres.beforeClose(stuckForever.resolve)
  gateways = await shared.startMany(REPLICAS)
})

interface Listed {
  readonly id: string
  readonly state: string
}

async function approvalsOf(gateway: GatewayProcess, session: string): Promise<readonly Listed[]> {
  const { body } = await shared.admin(gateway, 'GET', `/approvals?session=${session}`)
  return body.items.map(({ id, state }: Listed) => ({ id, state }))
}

/** Number of calls on any replica that wait for this approval, besides the one that created it. */
async function attachedTo(id: string): Promise<unknown> {
  const [row] = await postgres.rows(
    `SELECT count(*)::integer AS attached FROM replicas.entry
       WHERE journal = 'approvals' AND key = $1 AND event LIKE '%"attached"%'`,
    [id],
  )
  return row?.attached
}

/** One round of identical calls in one session; `decider` approves. */
async function playRound(session: string, decider: GatewayProcess): Promise<void> {
  const results = gateways.flatMap((gateway) =>
    Array.from({ length: CALLS_PER_REPLICA }, () => shared.call(gateway, session, 'wipe', { name: session })),
  )
  await until(async () => (await approvalsOf(decider, session)).length > 0, 'the question')
  const [question] = await approvalsOf(decider, session)
  const id = question?.id ?? ''
  await until(async () => (await attachedTo(id)) === CALLS - 1, 'every call to wait for the same approval')
  assert.equal((await shared.admin(decider, 'POST', `/approvals/${id}/approve`)).status, 200)
  const refusals = (await Promise.all(results)).map(({ error }) => error?.data.error ?? null)
  assert.equal(refusals.filter((refusal) => refusal === null).length, 1)
  assert.equal(refusals.filter((refusal) => refusal === 'approval_stale').length, CALLS - 1)
  assert.equal(executed.get(session), 1)
  for (const gateway of gateways) {
    await until(async () => (await approvalsOf(gateway, session))[0]?.state === 'used', 'the use')
    assert.deepEqual(await approvalsOf(gateway, session), [{ id, state: 'used' }])
  }
}

test(`${CALLS} identical held calls at ${REPLICAS} gateways: one question, one execution for its grant, no hang`, async () => {
  for (let round = 0; round < ROUNDS; round++) {
    await playRound(`round-${round}`, gateways[round % REPLICAS] ?? assert.fail())
  }
})

class Session {
  readonly name: string
  readonly #refused: Record<Tool, number> = { paid: 0, rated: 0 }

  constructor(name: string) {
    this.name = name
  }

  get isUsedUp(): boolean {
    return TOOLS.every((tool) => this.#refused[tool] >= REFUSED_MAX)
  }

  saw(tool: Tool, result: unknown): void {
    if (result === 'budget_exceeded' || result === 'rate_limited') this.#refused[tool]++
  }
}

let sessionCount = 0
const nextSession = () => new Session(`s${++sessionCount}`)

/** Refusals by their code; `null` for calls that passed, `cut` for those whose gateway was killed. */
const results = new Map<unknown, number>()
const killed = new Set<GatewayProcess>()
/** Names of calls whose end only their gateway knew: after a kill their holds count as spent. */
const unsure = new Map<GatewayProcess, string[]>()

async function callOnce(gateway: GatewayProcess, session: string, tool: Tool, more: object = {}): Promise<unknown> {
  const name = `${tool} ${session}`
  const result = await shared.refusal(gateway, session, tool, { name, ...more }).catch((error: unknown) => {
    if (killed.has(gateway)) return 'cut'
    throw error
  })
  results.set(result, (results.get(result) ?? 0) + 1)
  if (result === 'cut' || result === 'state_unavailable') unsure.set(gateway, [...(unsure.get(gateway) ?? []), name])
  return result
}

function pick<T>(from: readonly T[]): T {
  return from[Math.floor(Math.random() * from.length)] ?? assert.fail()
}

async function load(sessions: Session[], stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const at = Math.floor(Math.random() * SESSIONS)
    const session = sessions[at] ?? assert.fail()
    const tool = pick(TOOLS)
    session.saw(tool, await callOnce(pick(gateways), session.name, tool))
    if (session.isUsedUp && sessions[at] === session) sessions[at] = nextSession()
    await sleep(PAUSE_MS)
  }
}

async function pauseBackends(): Promise<void> {
  const paused = (await backendsOf(postgres)).filter(() => Math.random() < 0.8)
  await whilePaused(paused, async () => {
    const counted = gateways.map((gateway) => callOnce(gateway, nextSession().name, 'paid'))
    await Promise.all([sleep(PAUSED_MS), ...counted])
  })
}

async function cutConnections(): Promise<void> {
  for (const pid of await backendsOf(postgres))
    if (Math.random() < 0.5) await postgres.rows('SELECT pg_terminate_backend($1)', [pid])
}

/** Closes connections after the server has processed the last statement, before the gateway has the response. */
async function loseResponses(): Promise<void> {
  for (let times = 0; times < LOSSES; times++) {
    proxy.loseResponses()
    await sleep(LOSING_MS)
  }
}

/** Kills a gateway while calls have holds. */
async function killGateway(): Promise<void> {
  const first = gateways.shift() ?? assert.fail()
  const session = nextSession().name
  const held = TOOLS.map(async (tool) => {
    while (!killed.has(first)) await callOnce(first, session, tool, { stuck: true })
  })
  await until(() => TOOLS.every((tool) => executed.has(`${tool} ${session}`)), 'calls that hold')
  killed.add(first)
  await first.kill()
  await Promise.all(held)
  gateways.push(await shared.start())
}

/** While a transaction locks the counters of some sessions, every gateway counts in another session. */
async function lockCounters(): Promise<void> {
  const locked = Array.from({ length: LOCKED }, () => nextSession().name)
  const free = nextSession().name
  const [first = assert.fail()] = gateways
  for (const session of locked)
    await until(async () => (await callOnce(first, session, 'paid')) === null, 'a counter to lock')
  await postgres.beside(async (client) => {
    await client.query('BEGIN')
    const { rowCount } = await client.query('SELECT 1 FROM replicas.counter WHERE key LIKE ANY ($1) FOR UPDATE', [
      locked.map((session) => `%/${session}`),
    ])
    assert.ok(Number(rowCount) >= LOCKED)
    const stop = new AbortController()
    const blocked = gateways.flatMap((gateway) => locked.map((session) => callWhile(stop.signal, gateway, session)))
    for (const gateway of gateways)
      for (let passed = 0; passed < FREE_CALLS; passed++)
        await until(async () => (await callOnce(gateway, free, 'rated')) === null, 'a call of another session')
    await client.query('ROLLBACK')
    stop.abort()
    await Promise.all(blocked)
  })
}

async function callWhile(stop: AbortSignal, gateway: GatewayProcess, session: string): Promise<void> {
  while (!stop.aborted) await callOnce(gateway, session, 'paid')
}

/** The pause comes last: the end of a gateway does not clear its effects. */
const FAULTS = [killGateway, cutConnections, loseResponses, lockCounters, () => crash(postgres), pauseBackends]

interface Counted {
  readonly name: string
  /** In calls. */
  readonly spent: number
  readonly held: number
}

/** All counters, by the names of their calls. */
async function counted(): Promise<readonly Counted[]> {
  const rows = await postgres.rows('SELECT key, spent::float, held::float FROM replicas.counter')
  return rows.map(({ key, spent, held }) => {
    const [tool, unit] = String(key).startsWith('rate/') ? ['rated', 1] : ['paid', MICROS_PER_CALL]
    return { name: `${tool} ${String(key).split('/').at(-1)}`, spent: Number(spent) / unit, held: Number(held) / unit }
  })
}

/** Calls whose holds count as spent after their gateway was killed, by name. */
function unsureOfKilled(): ReadonlyMap<string, number> {
  const names = [...killed].flatMap((gateway) => unsure.get(gateway) ?? [])
  return new Map(Object.entries(Object.groupBy(names, (name) => name)).map(([name, all]) => [name, all?.length ?? 0]))
}

/** Each executed call is counted once, and other counts are only holds of killed gateways. */
function assertCounts(counters: readonly Counted[]): void {
  const allowed = unsureOfKilled()
  for (const { name, spent, held } of counters) {
    const cap = name.startsWith('rated') ? CAPS.rated : CAPS.paid
    const calls = executed.get(name) ?? 0
    const text = `${name}: ${calls} executed, ${spent} spent, ${held} held, ${allowed.get(name) ?? 0} unsure`
    assert.ok(spent + held <= cap && calls <= spent && spent <= calls + (allowed.get(name) ?? 0), text)
  }
  const known = new Set(counters.map(({ name }) => name))
  for (const [name, calls] of executed)
    if (/^(?:paid|rated) /.test(name)) assert.ok(known.has(name), `${name}: ${calls} executed, not counted`)
}

test('under load no cap is exceeded and no hold leaks, while server processes pause or crash, connections break and gateways die', async (t) => {
  const stop = new AbortController()
  const sessions = Array.from({ length: SESSIONS }, nextSession)
  const callers = Promise.all(Array.from({ length: CALLERS }, () => load(sessions, stop.signal)))
  const began = performance.now()
  let rounds = 0
  do {
    for (const cause of FAULTS) await Promise.race([cause(), callers])
    rounds++
  } while (performance.now() - began < SECONDS * 1_000)
  stop.abort()
  await callers
  const ended = performance.now()
  const isSettled = async () => (await counted()).every(({ held }) => held === 0)
  await until(async () => (await isSettled()) || performance.now() - ended > SETTLED_MS, 'the end of every hold')
  const settledMs = Math.round(performance.now() - ended)
  const counters = await counted()
  assert.deepEqual(
    counters.filter(({ held }) => held > 0),
    [],
    `after ${SETTLED_MS} ms`,
  )
  assertCounts(counters)
  assert.deepEqual(
    [...results.keys()].filter((result) => !REFUSALS.has(result)),
    [],
  )
  for (const reached of ['budget_exceeded', 'rate_limited']) assert.ok(results.has(reached), reached)
  t.diagnostic(
    JSON.stringify({
      seconds: Math.round((ended - began) / 1_000),
      rounds,
      sessions: sessionCount,
      settledMs,
      results: Object.fromEntries(results),
    }),
  )
})
