import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { buildInfo, TestClock } from '@plat/core'
import { ephemeralSigner } from '@plat/keys'
import { createRegistry } from '@plat/metrics'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { signJws } from '@plat/tokens'
import { followLicense, licenseMeter, licenseMetrics, readAuthority, type Standing } from './index.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const signer = ephemeralSigner()
const authority = readAuthority(JSON.stringify(signer.publicJwk), 'test')

/** A followed file, its series, and its log lines. */
async function setUp(t: TestContext, first: string | null) {
  const path = join(tempFolder(), 'license.jws')
  if (first !== null) writeFileSync(path, first)
  const clock = new TestClock()
  const registry = createRegistry(licenseMetrics, { component: 'test', build: buildInfo('test') })
  const received: string[] = []
  const seen: Standing[] = []
  const meter = licenseMeter(registry)
  const followed = await followLicense({
    path,
    clock,
    log: {
      ...silentLog,
      info: (_fields, message) => void received.push(message),
      warn: (fields) => void received.push(`${Object(fields).state} ${Object(fields).reason ?? ''}`.trim()),
    },
    authority,
    onStanding(standing) {
      seen.push(standing)
      meter(standing)
    },
  })
  t.after(() => followed.close())
  const series = (): readonly string[] => registry.expose().match(/^plat_license_.*$/gm) ?? []
  const current = () => series().filter((line) => line.endsWith('} 1'))
  /** Advances time until the licence has this state. */
  const turns = (state: string) =>
    until(
      () => seen.at(-1)?.state === state,
      state,
      () => clock.advance(10_000),
    )
  return { path, clock, followed, received, series, current, turns }
}

/** A licence with a day of grace. */
function license(clock: { now(): number }, edition: string, seconds: number): string {
  const now = Math.floor(clock.now() / 1000)
  const claims = {
    jti: edition,
    sub: 'Example Ltd',
    edition,
    nbf: now,
    exp: now + seconds,
    graceDays: 1,
    nodes: 5,
  }
  return signJws(signer, { typ: 'plat-license+jws' }, claims)
}

test('without a file there is no licence, no day left of it and no limit', async () => {
  const seen: Standing[] = []
  const clock = new TestClock()
  const followed = await followLicense({ path: '', clock, log: silentLog, onStanding: (one) => void seen.push(one) })
  assert.equal(followed.standing().state, 'none')
  assert.deepEqual(seen, [followed.standing()])
  followed.close()
})

test('a licence expires while it is followed, and each state is logged once', async (t) => {
  // Shows D3.label.plat_license_state.state.valid, D3.label.plat_license_state.state.grace,
  // D3.label.plat_license_state.state.expired.
  // Shows D3.metric.plat_license_days_left, D3.metric.plat_license_node_limit.
  const { clock, received, series, current, turns } = await setUp(t, license(new TestClock(), 'enterprise', 20))
  assert.deepEqual(current(), ['plat_license_state{edition="enterprise",state="valid"} 1'])
  assert.ok(series().includes('plat_license_days_left 0'))
  assert.ok(series().includes('plat_license_node_limit 5'))
  assert.equal(series().length, 7)
  await turns('grace')
  assert.deepEqual(current(), ['plat_license_state{edition="enterprise",state="grace"} 1'])
  assert.ok(series().includes('plat_license_days_left -1'))
  await clock.advance(DAY_MS - 20_000)
  await turns('expired')
  assert.deepEqual(current(), ['plat_license_state{edition="enterprise",state="expired"} 1'])
  assert.ok(series().some((line) => /^plat_license_days_left -\d+$/.test(line)))
  assert.deepEqual(received, ['the licence is valid', 'grace', 'expired'])
})

test('a changed file is reloaded, and no series of the previous edition remains', async (t) => {
  const { path, clock, received, series, current, turns } = await setUp(t, null)
  assert.deepEqual(current(), ['plat_license_state{edition="community",state="invalid"} 1'])
  // Without a licence there is no series for the days left: an alert on too few must not see a 0.
  assert.ok(!series().some((line) => line.startsWith('plat_license_days_left')))
  writeFileSync(path, license(clock, 'team', 86_400 * 30))
  await turns('valid')
  assert.deepEqual(current(), ['plat_license_state{edition="team",state="valid"} 1'])
  assert.ok(!series().some((line) => line.includes('community')))
  writeFileSync(path, 'x'.repeat(20_000))
  await turns('invalid')
  assert.ok(!series().some((line) => line.includes('team')))
  writeFileSync(path, license(clock, 'enterprise', 86_400 * 30))
  await turns('valid')
  rmSync(path)
  await turns('invalid')
  assert.deepEqual(received, [
    'invalid there is no such file',
    'the licence is valid',
    'invalid the file has more than 12288 bytes',
    'the licence is valid',
    'invalid there is no such file',
  ])
})
