import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { isObject, systemClock } from '@plat/core'
import { testProver } from '@plat/testkit/dpop'
import fc from 'fast-check'

const BROKER_TOKEN = 'broker-secret'
const JWT = 'urn:ietf:params:oauth:token-type:jwt'

/** Statuses that docs/spec/broker-api.md names for the endpoints, and those of HTTP itself. No 500, and no 502 without a provider. */
const STATUSES: Readonly<Record<string, readonly number[]>> = {
  '/v1/token': [200, 400, 401, 403, 415, 503],
  '/v1/token/verify': [200, 400, 401, 415],
  '/v1/token/bind': [200, 400, 401, 409],
  '/v1/proof/nonce': [200, 400, 401, 415, 429],
  '/v1/exchange': [200, 400],
  '/v1/introspect': [200, 400, 401],
}

/** Inputs of the fuzzer: tokens of every kind, and proofs for the two places that accept one. */
interface Pool {
  readonly url: string
  readonly tokens: readonly string[]
  readonly proofs: readonly string[]
}

async function fillPool(url: string): Promise<Pool> {
  const prover = testProver()
  const ask = async (where: string, body: object, headers: Record<string, string> = {}) => {
    const all = { authorization: `Bearer ${BROKER_TOKEN}`, 'content-type': 'application/json', ...headers }
    const response = await fetch(url + where, { method: 'POST', headers: all, body: JSON.stringify(body) })
    const answer: unknown = await response.json()
    return isObject(answer) ? answer : {}
  }
  const mint = async (agent: string, more: object = {}) => {
    const scopes = ['tools:a', 'agents:a', 'agents:b', 'agents:c']
    const body = { namespace: 'n', agent, session: 's', user: 'u', scopes, ...more }
    return String((await ask('/v1/token', body)).token)
  }
  const sessions = await Promise.all([mint('a'), mint('b'), mint('c'), mint('a', { ttlSeconds: 2 })])
  const bound = await mint('b', { dpopJkt: prover.jkt })
  const [a = '', b = ''] = sessions
  const exchanged = await ask('/v1/exchange', { subject_token: a, audience: 'reports' })
  const delegated = await ask('/v1/exchange', { subject_token: a, actor_token: b })
  const tokens = [...sessions, bound, String(exchanged.access_token), String(delegated.access_token), '', 'x.y.z']
  const places = ['/v1/token/bind', '/v1/exchange'].map((where) => url + where)
  const proofs = places.flatMap((place) => tokens.map((token) => prover.proof(place, token)))
  return { url, tokens, proofs }
}

/** Usual values of each member; a token placeholder selects any of the pool's. */
const TOKEN = Symbol('a token of the pool')
type Usual = readonly unknown[] | typeof TOKEN

const JWT_TYPES = [JWT, 'urn:ietf:params:oauth:token-type:txn_token']
const MEMBERS: Readonly<Record<string, Readonly<Record<string, Usual>>>> = {
  '/v1/token': {
    namespace: ['n', 'm'],
    agent: ['a', 'b'],
    session: ['s'],
    user: ['u'],
    scopes: [['tools:a'], ['tools:a', 'agents:b']],
    ttlSeconds: [0, 60],
    groups: [['g']],
    proof: [
      { check: 'test', nonce: 'x' },
      { check: 'none', token: 'dark' },
    ],
  },
  '/v1/token/verify': { token: TOKEN, audience: ['reports', 'plat-gateway'] },
  '/v1/token/bind': {},
  '/v1/proof/nonce': { check: ['test'] },
  '/v1/exchange': {
    grant_type: ['urn:ietf:params:oauth:grant-type:token-exchange'],
    subject_token: TOKEN,
    subject_token_type: JWT_TYPES,
    audience: ['reports', 'plat-gateway'],
    scope: ['tools:a', 'tools:a agents:b'],
    requested_ttl_seconds: ['60', 7],
    actor_token: TOKEN,
    actor_token_type: [JWT],
  },
  '/v1/introspect': { token: TOKEN, token_type_hint: ['access_token'] },
}

function member(pool: Pool, usual: Usual): fc.Arbitrary<unknown> {
  return fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...(usual === TOKEN ? pool.tokens : usual)) },
    { weight: 1, arbitrary: fc.constantFrom<unknown>(...pool.tokens) },
    { weight: 1, arbitrary: fc.oneof(fc.string({ maxLength: 20 }), fc.jsonValue({ maxDepth: 2 })) },
  )
}

function requests(pool: Pool) {
  return fc.constantFrom(...Object.entries(MEMBERS)).chain(([where, table]) => {
    const members = Object.entries(table).map(([name, usual]) => [name, member(pool, usual)] as const)
    return fc.record({
      where: fc.constant(where),
      members: fc.record(Object.fromEntries(members), { requiredKeys: [], noNullPrototype: true }),
      form: where.startsWith('/v1/token') ? fc.constant(false) : fc.boolean(),
      damage: fc.option(fc.tuple(fc.nat(), fc.string({ minLength: 1, maxLength: 2 })), { freq: 1 }),
      bearer: where === '/v1/token/bind' ? fc.constantFrom(...pool.tokens) : fc.constant(BROKER_TOKEN),
      proof: fc.option(fc.constantFrom(...pool.proofs)),
    })
  })
}

type Sent = ReturnType<typeof requests> extends fc.Arbitrary<infer T> ? T : never

function bodyOf({ members, form, damage }: Sent): string {
  const pairs = Object.entries(members).map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ])
  const whole = form ? new URLSearchParams(pairs).toString() : JSON.stringify(members)
  if (damage === null) return whole
  const at = damage[0] % (whole.length + 1)
  return whole.slice(0, at) + damage[1] + whole.slice(at + 1)
}

async function answers({ url }: Pool, sent: Sent): Promise<void> {
  const headers: Record<string, string> = {
    authorization: `Bearer ${sent.bearer}`,
    'content-type': sent.form ? 'application/x-www-form-urlencoded' : 'application/json',
    ...(sent.proof === null ? {} : { dpop: sent.proof }),
  }
  const response = await fetch(url + sent.where, { method: 'POST', headers, body: bodyOf(sent) })
  const body: unknown = await response.json()
  assert.ok(isObject(body))
  assert.ok(STATUSES[sent.where]?.includes(response.status), `${sent.where} answered ${response.status}`)
  assert.equal(response.headers.get('cache-control'), 'no-store')
  if (response.status !== 200) assert.equal(typeof body.error, 'string')
  else if (sent.where === '/v1/exchange') neverMore(sent, body)
}

/** For any request, the result has no more rights and no longer life than its source token. */
function neverMore({ members, form, damage }: Sent, { access_token }: Readonly<Record<string, unknown>>): void {
  const [issued, source] = [access_token, members.actor_token || members.subject_token].map(claimsIn)
  // Of a form and of a damaged body the members here are not quite what was sent.
  if (issued === undefined || source === undefined || form || damage !== null) return
  assert.ok(Number(issued.exp) <= Number(source.exp))
  const granted = String(source.scope).split(' ')
  assert.ok(
    String(issued.scope)
      .split(' ')
      .every((scope) => granted.includes(scope)),
  )
  assert.equal(issued.sub, source.sub)
  if (source.cnf !== undefined) assert.deepEqual(issued.cnf, source.cnf)
}

function claimsIn(token: unknown): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString())
}

/** Shorter runs end before the engine has reached a steady state; their figure is only printed. In seconds. */
const LEAST_JUDGED_SECONDS = 60
/** Allowed growth of retained memory from the end of the first tenth of a run to the end of the last. */
const MAX_GROWTH = 1.1

/** Resident memory in bytes: as it is, and after full garbage collection. */
interface Memory {
  readonly rss: number
  readonly retained: number
}

/** The broker under test, in a separate process. */
class Broker {
  readonly url: string
  readonly #child: ChildProcess

  private constructor(url: string, child: ChildProcess) {
    this.url = url
    this.#child = child
  }

  static async start(exchangeConfig: string): Promise<Broker> {
    const file = path.join(import.meta.dirname, 'fixtures/fuzz-broker.ts')
    const env = { ...process.env, PLAT_BROKER_TOKEN: BROKER_TOKEN }
    const child = fork(file, [exchangeConfig], { execArgv: ['--expose-gc'], env })
    return new Broker(String((await received(child)).url), child)
  }

  async memory(): Promise<Memory> {
    this.#child.send('memory')
    const { rss, retained } = await received(this.#child)
    return { rss: Number(rss), retained: Number(retained) }
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return
    this.#child.kill('SIGKILL')
    await once(this.#child, 'exit')
  }
}

/** The next message of a child; rejects when it ends instead. */
async function received(child: ChildProcess): Promise<Readonly<Record<string, unknown>>> {
  const over = new AbortController()
  const ended = once(child, 'exit', { signal: over.signal }).then(() => assert.fail('the broker ended'))
  try {
    const [message]: unknown[] = await Promise.race([once(child, 'message', { signal: over.signal }), ended])
    assert.ok(isObject(message))
    return message
  } finally {
    over.abort()
    ended.catch(() => {})
  }
}

/** Memory of the broker at the end of the first tenth of a run, and at its end. */
class MemoryTenths {
  readonly #broker: Broker
  readonly #firstTenthEnds: number
  #first: Memory | null = null

  constructor(broker: Broker, seconds: number) {
    this.#broker = broker
    this.#firstTenthEnds = systemClock.monotonic() + seconds * 100
  }

  async look(): Promise<void> {
    if (this.#first !== null || systemClock.monotonic() < this.#firstTenthEnds) return
    this.#first = await this.#broker.memory()
  }

  /** Returns null when the memory stayed, or `seconds` are too few to decide. */
  async verdict(seconds: number): Promise<string | null> {
    const last = await this.#broker.memory()
    const first = this.#first ?? last
    const stated = `memory of the broker from the first tenth to the last: retained ${grown(first.retained, last.retained)}, resident ${grown(first.rss, last.rss)}`
    console.log(`identity: ${stated}`)
    return seconds >= LEAST_JUDGED_SECONDS && last.retained / first.retained > MAX_GROWTH ? stated : null
  }
}

function grown(from: number, to: number): string {
  const [before, after] = [from, to].map((bytes) => Math.round(bytes / 2 ** 20))
  return `${before} to ${after} MiB (${(to / from).toFixed(2)})`
}

/** Every endpoint answers any request with a documented status, and never issues more than allowed. */
export const target = {
  name: 'identity: every endpoint of the broker',
  async run(seconds: number, seed: number): Promise<{ cases: number; failures: readonly string[] }> {
    const dir = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
    const exchangeConfig = path.join(dir, 'exchange.json')
    const reports = { allowedScopes: ['tools:a'], allowedNamespaces: ['n'] }
    writeFileSync(exchangeConfig, JSON.stringify({ audiences: { reports } }))
    const broker = await Broker.start(exchangeConfig)
    try {
      const pool = await fillPool(broker.url)
      const memory = new MemoryTenths(broker, seconds)
      const promise = fc.asyncProperty(requests(pool), async (sent) => {
        await answers(pool, sent)
        await memory.look()
      })
      const limits = { seed, numRuns: 2 ** 31 - 1, interruptAfterTimeLimit: seconds * 1000 }
      const done = await fc.check(promise, limits)
      const failure = () => `${fc.stringify(done.counterexample)}: ${String(done.errorInstance)}`
      const grown = await memory.verdict(seconds)
      return {
        cases: done.numRuns,
        failures: [...(done.failed ? [failure()] : []), ...(grown === null ? [] : [grown])],
      }
    } finally {
      await broker.stop()
      rmSync(dir, { recursive: true })
    }
  },
}
