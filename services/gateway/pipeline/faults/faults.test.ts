import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import type { WireRequest } from '../../call/index.ts'
import { createLiveCalls } from '../live.ts'
import { GatewayRequest } from '../runner/call.ts'
import { createRunner } from '../runner/runner.ts'
import { faultMatrix, type ScenarioFixture, ScenarioResult } from './fixture.ts'
import { brokenPromises } from './judge.ts'
import { fakeLedgers, fakePlane, fakeReviews, fakeStages } from './parts.ts'
import { type Scenario, scenarios, shapes } from './scenario.ts'

/** Scenarios that run concurrently on one clock; more would make each step of the clock slower. */
const TOGETHER = 250
/** Longer than every deadline of the runner and every delay of a fake, in milliseconds. */
const A_WHILE_MS = 60_000
const TEN_MINUTES_MS = 600_000

const quiet = { error: () => {} }
const uncounted = { decided() {}, responded() {}, upstream() {}, upstreamFailed() {} }

for (const shape of shapes) {
  test(`a call of shape ${shape} is responded to, settled and recorded once, whatever fails`, async () => {
    const all = [...scenarios()].filter((scenario) => scenario.shape === shape)
    assert.ok(all.length > 1000)
    const broken: string[] = []
    for (let from = 0; from < all.length; from += TOGETHER) {
      for (const fixture of await runTogether(all.slice(from, from + TOGETHER))) {
        for (const promise of brokenPromises(fixture)) broken.push(`${JSON.stringify(fixture.scenario)}: ${promise}`)
      }
    }
    assert.equal(broken.length, 0, `${broken.length} broken of ${all.length}:\n${broken.slice(0, 20).join('\n')}`)
  })
}

async function runTogether(batch: readonly Scenario[]): Promise<readonly ScenarioResult[]> {
  const clock = new TestClock()
  const live = createLiveCalls(clock)
  let bell = Promise.withResolvers<void>()
  clock.every(TEN_MINUTES_MS, () => {
    bell.resolve()
    bell = Promise.withResolvers()
  })
  const fixture: ScenarioFixture = { clock, live, tenMinutes: () => bell.promise }
  const worlds = batch.map((scenario, index) => new ScenarioResult(`s${index}`, scenario, fixture))
  for (const fixture of worlds) start(fixture)
  await clock.advance(A_WHILE_MS)
  if (batch[0]?.shape === 'hour') await clock.advance(6 * TEN_MINUTES_MS)
  live.close()
  return worlds
}

function start(fixture: ScenarioResult): void {
  const { clock, live } = fixture.fixture
  const runner = createRunner({
    stages: fakeStages(fixture),
    reviews: fakeReviews(fixture),
    matrix: faultMatrix,
    authenticate: () => fixture.identity,
    ledgers: fakeLedgers(fixture),
    auditFailurePolicy: fixture.scenario.audit,
    live,
    snapshots: fixture.snapshots,
    clock,
    metrics: uncounted,
    log: quiet,
  })
  const { sink, abort } = fixture
  const wire: WireRequest = {
    method: 'POST',
    path: '/mcp/notes',
    query: '',
    headers: {},
    body: Readable.from([]),
    remote: '',
  }
  const incoming = new GatewayRequest({
    id: fixture.id,
    wire,
    sink,
    abort,
    snapshot: fixture.snapshots.current,
    clock,
    log: quiet,
  })
  runner.govern(incoming, fakePlane(fixture)).then(() => {
    fixture.over = true
  })
}
