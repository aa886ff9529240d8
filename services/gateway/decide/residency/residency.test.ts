import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { type Call, deny, isDenial, Snapshots, type Target, unresolved } from '../../call/index.ts'
import { testCall, testTarget } from '../../call/testing/call.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { stage } from '../../pipeline/stage.ts'
import { recordedMetrics, testMetrics } from '../../testing/metrics.ts'
import { createResidency } from './index.ts'
import type { PlacesOf } from './stage.ts'

const clock = new TestClock()

const target = (jurisdiction: string | null, more: Partial<Target> = {}): Target => ({
  ...testTarget,
  tool: null,
  jurisdiction,
  ...more,
})

function callIn(snapshots: Snapshots, resolved: Target): Call<'identity' | 'target'> {
  const own = { receivedAt: clock.now(), snapshot: snapshots.current }
  return testCall({ identity: testIdentity, target: resolved }, own)
}

/** A resolve stage that returns a fixed target. */
const finds = (found: Target) =>
  stage({
    name: 'resolve',
    needs: ['identity'],
    gives: ['target'],
    skipped: { target: unresolved },
    admit: () => ({ target: found }),
    still: () => (found.key === 'gone' ? deny('unknown_server', 'gone') : null),
  })

const itself: PlacesOf = (_call, _snapshot, found) => [found]

async function setUp(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  const sovereigntyPolicyFile = join(dir, 'sovereignty.json')
  const snapshots = new Snapshots()
  const { metrics, of } = recordedMetrics()
  const residency = createResidency({
    config: { sovereigntyPolicyFile, policyReloadSeconds: 2 },
    snapshots,
    clock,
    log: silentLog,
    metrics,
  })
  t.after(async () => {
    residency.close()
    await rm(dir, { recursive: true })
  })
  const says = async (content: unknown) => {
    await writeFile(sovereigntyPolicyFile, typeof content === 'string' ? content : JSON.stringify(content))
    await residency.check()
  }
  const reaches = (found: Target, places: PlacesOf = itself) => {
    const verdict = residency.resolve(finds(found), places).admit(callIn(snapshots, found))
    assert.ok(typeof verdict === 'object' && !(verdict instanceof Promise))
    return isDenial(verdict) ? `${verdict.code}: ${verdict.reason}` : 'reached'
  }
  return { residency, snapshots, says, reaches, of, file: sovereigntyPolicyFile }
}

test('a target that does not comply is refused with residency_denied, with the reason', async (t) => {
  const { says, reaches } = await setUp(t)
  await says({ allowedJurisdictions: ['EU'], dataClassRules: { restricted: { allowedJurisdictions: ['DE'] } } })
  assert.equal(reaches(target('FR')), 'reached')
  assert.equal(reaches(target('US')), 'residency_denied: notes runs in US, which is not allowed')
  assert.equal(reaches(target(null)), 'reached')
  const restricted = { dataClass: 'restricted' } as const
  assert.equal(
    reaches(target('FR', restricted)),
    'residency_denied: notes runs in FR, which is not allowed for restricted data',
  )
  assert.equal(reaches(target('DE', restricted)), 'reached')
  await says({ requireJurisdiction: true })
  assert.equal(reaches(target(null)), 'residency_denied: notes does not say where it runs, which is required')
  assert.equal(reaches(target(null, { builtin: true })), 'reached')
})

test('a target with several places is reached if one of them complies', async (t) => {
  const { says, reaches, residency, snapshots } = await setUp(t)
  await says({ allowedJurisdictions: ['EU'] })
  const places =
    (...codes: string[]) =>
    () =>
      codes.map((jurisdiction) => target(jurisdiction))
  assert.equal(reaches(target('US'), places('US', 'DE')), 'reached')
  assert.match(reaches(target('US'), places('US', 'CH')), /^residency_denied/)
  assert.equal(residency.fault(snapshots.current, target('US')), 'runs in US, which is not allowed')
  assert.equal(residency.fault(snapshots.current, target('DE')), null)
})

test('a session of a tier whose jurisdiction does not comply is refused, also during a call and for built-in servers', async (t) => {
  const { residency, says, reaches, snapshots } = await setUp(t)
  const rules = { allowedJurisdictions: ['EU'], dataClassRules: { restricted: { allowedJurisdictions: ['DE'] } } }
  const at = (place: string) => says({ ...rules, tierJurisdictions: { [testIdentity.tier]: place } })
  await at('FR')
  const found = target('DE')
  const resolve = residency.resolve(finds(found), itself)
  const call = callIn(snapshots, found)
  assert.deepEqual([reaches(found), resolve.still?.(call)], ['reached', null])
  const tier = `the session is of tier ${testIdentity.tier}, which`
  const no = `residency_denied: ${tier} runs in FR, which is not allowed for restricted data`
  assert.equal(reaches(target('DE', { dataClass: 'restricted' })), no)
  assert.equal(reaches(target(null, { dataClass: 'restricted', builtin: true })), no)
  await at('US')
  assert.equal(resolve.still?.(call)?.reason, `${tier} runs in US, which is not allowed`)
})

test('nothing is reached until the file is loaded; an invalid file later leaves the previous one in force', async (t) => {
  const { residency, says, reaches, file } = await setUp(t)
  const closed = 'residency_denied: notes cannot be judged: sovereigntyPolicyFile cannot be read'
  assert.equal(reaches(target('DE')), closed)
  await residency.check()
  assert.equal(reaches(target('DE')), closed)
  for (const bad of [
    '{',
    '{"allowed": ["DE"]}',
    '{"allowedJurisdictions": ["Germany"]}',
    '{"allowedCIDRs": ["10.0.0.0/99"]}',
  ]) {
    await says(bad)
    assert.equal(reaches(target('DE')), closed, bad)
  }
  await says({ version: 1, allowedJurisdictions: ['DE'] })
  assert.equal(reaches(target('DE')), 'reached')
  await says('{')
  await rm(file)
  await residency.check()
  assert.equal(reaches(target('DE')), 'reached')
  assert.match(reaches(target('FR')), /^residency_denied/)
})

test('a long call is ended when new rules deny it', async (t) => {
  const { residency, says, snapshots } = await setUp(t)
  await says({ allowedJurisdictions: ['EU'] })
  const found = target('FR')
  const resolve = residency.resolve(finds(found), itself)
  const call = callIn(snapshots, found)
  assert.equal(resolve.still?.(call), null)
  await says({ allowedJurisdictions: ['DE'] })
  assert.equal(resolve.still?.(call)?.code, 'residency_denied')
  const gone = { ...found, key: 'gone' }
  assert.equal(residency.resolve(finds(gone), itself).still?.(callIn(snapshots, gone))?.code, 'unknown_server')
})

test('an audit retention below six months is reported', async (t) => {
  // Shows D3.metric.plat_gateway_audit_retention_below_ai_act.
  const { says, of } = await setUp(t)
  for (const auditRetentionDays of [183, 184, undefined]) await says({ auditRetentionDays })
  assert.deepEqual(of('plat_gateway_audit_retention_below_ai_act'), ['1', '0', '0'])
})

test('without a file stage and dialer are returned unchanged', () => {
  const config = { sovereigntyPolicyFile: '', policyReloadSeconds: 2 }
  const snapshots = new Snapshots()
  const residency = createResidency({ config, snapshots, clock, log: silentLog, metrics: testMetrics() })
  const inner = finds(target('US'))
  assert.equal(residency.resolve(inner, itself), inner)
  assert.equal(residency.fault(snapshots.current, target('US')), null)
})
