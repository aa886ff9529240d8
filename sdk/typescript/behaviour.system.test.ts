import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { pythonWith } from '@plat/testkit/processes/python'
import { until } from '@plat/testkit/until'
import { type Driver, type Operation, type Outcome, TypeScriptDriver } from './testing/behaviour/driver.ts'
import type { FrontMode } from './testing/behaviour/front.ts'
import { type Plat, PUBLIC_URL, SCOPES, startPlat } from './testing/behaviour/plat.ts'
import { oldestAndNewest } from './testing/pythons.ts'

interface Scenario {
  readonly name: string
  readonly connect: {
    readonly session: string
    readonly dpop?: boolean
    readonly ttlSeconds?: number
    readonly skewSeconds?: number
    readonly bootstrap?: readonly string[]
  }
  readonly gives?: Outcome
  readonly steps: readonly Operation[]
}

const sdk = path.join(import.meta.dirname, '..')
const scenarios: readonly Scenario[] = JSON.parse(readFileSync(path.join(sdk, 'behaviour/scenarios.json'), 'utf8'))

/** The SDK for Python in another process. */
class PythonDriver implements Driver {
  readonly #child
  readonly #lines

  constructor(python: string, kind: string) {
    const env = { ...process.env, PYTHONPATH: path.join(sdk, 'python/src'), PYTHONDONTWRITEBYTECODE: '1' }
    this.#child = spawn(python, [path.join(sdk, 'python/tests/driver.py'), kind], {
      env,
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
  }

  async perform(operation: Operation): Promise<Outcome> {
    this.#child.stdin.write(`${JSON.stringify(operation)}\n`)
    const { value, done } = await this.#lines.next()
    assert.ok(done !== true, 'the driver ended')
    return JSON.parse(value)
  }

  async close(): Promise<void> {
    const ended = once(this.#child, 'close')
    this.#child.stdin.end()
    await ended
  }
}

/** An SDK, or the reason why it is not tried. */
interface Candidate {
  readonly name: string
  readonly open: () => Driver
  readonly skip: string | false
}

async function candidates(): Promise<readonly Candidate[]> {
  const found: Candidate[] = [{ name: 'TypeScript', open: () => new TypeScriptDriver(), skip: false }]
  for (const { path: interpreter, version } of await oldestAndNewest()) {
    const python = await pythonWith(path.join(sdk, 'python/tests/requirements.txt'), interpreter)
    for (const kind of ['threads', 'tasks']) {
      const [file, skip] = 'missing' in python ? ['', python.missing] : [python.path, false as const]
      found.push({ name: `Python ${version}, ${kind}`, open: () => new PythonDriver(file, kind), skip })
    }
  }
  return found
}

// Found before the first test is declared: a run ends when no declared test is left.
const tried = await candidates()
const serviceAccountTokenFile = path.join(tempFolder(), 'sa-token')
let plat: Plat

before(async () => {
  writeFileSync(serviceAccountTokenFile, 'projected')
  plat = await startPlat()
})

after(() => plat.close())

for (const [number, { name, open, skip }] of tried.entries()) {
  describe(name, { skip }, () => {
    let driver: Driver
    before(() => {
      driver = open()
    })
    after(() => driver.close())
    for (const scenario of scenarios) {
      test(scenario.name, async () => {
        // Every SDK has sessions of its turn: counters and revocations stay.
        const session = `${scenario.connect.session}-${number}`
        plat.front.reset()
        plat.bootstrap.expect(session, scenario.connect.bootstrap ?? [])
        const opened = await driver.perform({ open: opening(scenario, session) })
        judge(opened, scenario.gives ?? { ok: true }, 'connect')
        for (const step of scenario.steps) await perform(driver, step, session)
      })
    }
  })
}

function opening({ connect }: Scenario, session: string): object {
  const { dpop = false, ttlSeconds = null, skewSeconds = 0, bootstrap } = connect
  const { front, identityURL, brokerToken } = plat
  return {
    ...{ gatewayURL: front.url, publicURL: PUBLIC_URL, identityURL, brokerToken, session, scopes: SCOPES },
    ...{ dpop, ttlSeconds, skewSeconds, serviceAccountTokenFile },
    bootstrapURL: bootstrap === undefined ? null : plat.bootstrap.url,
  }
}

/** Steps are operations of the SDK, except for those that change or observe the plat. */
async function perform(driver: Driver, step: Operation, session: string): Promise<void> {
  const { front, bootstrap } = plat
  const { gives = { ok: true }, claims, ...operation } = step
  const [what] = Object.keys(step)
  if (what === 'front') front.mode = frontMode(step.front)
  else if (what === 'forwarded' || what === 'refused') assert.equal(front[what], step[what], what)
  else if (what === 'untilRepeated') await untilRepeated(driver, String(step[what]), Object(gives))
  else if (what === 'bootstraps') assert.equal(bootstrap.requests, step.bootstraps)
  else if (what === 'revoke')
    await plat.admin('/v1/revocations', { target: { session: `default/assistant/${session}` }, reason: 'lost' })
  else if (what === 'decide') await decide(String(step.decide), session)
  else if (claims !== undefined) judge(await driver.perform({ claims: true }), { ...Object(claims), session }, 'claims')
  else judge(await driver.perform(operation), Object(gives), JSON.stringify(step))
}

function frontMode(value: unknown): FrontMode {
  if (value === 'overloaded' || value === 'foreign' || value === 'nonce') return value
  return assert.fail(`no mode of the front: ${value}`)
}

/**
 * Calls a tool with a rate limit until the SDK repeated one of the calls. A single pair of calls does not show it: on a busy machine the
 * second one may come after the interval of the limit.
 */
async function untilRepeated(driver: Driver, tool: string, gives: Outcome): Promise<void> {
  let calls = 0
  await until(async () => {
    calls++
    judge(await driver.perform({ tool }), gives, `call ${calls} of ${tool}`)
    return plat.front.forwarded > calls
  }, 'a repeated call')
}

/** Approves or denies the pending approval of the session. */
async function decide(decision: string, session: string): Promise<void> {
  let pending = ''
  await until(async () => {
    const { items } = await plat.admin('/v1/approvals?limit=1000')
    const own = Array.isArray(items)
      ? items.find((one) => one.state === 'pending' && one.session === session)
      : undefined
    pending = own?.id ?? ''
    return pending !== ''
  }, 'the pending approval')
  await plat.admin(`/v1/approvals/${pending}/${decision}`, { reason: 'by the test' })
}

/** Every expected member is there; others may be. */
function judge(outcome: Outcome, expected: Outcome, what: string): void {
  const seen = Object.fromEntries(Object.keys(expected).map((name) => [name, outcome[name]]))
  assert.deepEqual(seen, expected, `${what} gave ${JSON.stringify(outcome)}`)
}
