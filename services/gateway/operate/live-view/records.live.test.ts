import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { segmentPath } from '@plat/ledger'
import { tempFolder } from '@plat/testkit/local'
import { startRfbServer } from '@plat/testkit/rfb-server'
import { until } from '@plat/testkit/until'
import { BLUE, RED, type TestTenant } from '../tenants/testing/files.ts'
import { setUpTenants } from '../tenants/testing/two-tenants.ts'
import { SESSION, setUpViews } from './testing/fixture.ts'
import { openViewer } from './testing/viewer.ts'

/** Records of one change, so that few of them fill a segment. */
const REASON = 'x'.repeat(200)
const CHANGES_AT_ONCE = 8

/** Views of a gateway whose ledger cannot be written, because a file is in the way of its next segment, until `mend`. */
async function setUpBroken(t: TestContext, auditFailurePolicy: 'open' | 'closed') {
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const config = { auditPath, auditSegmentBytes: 65_536, auditFailurePolicy }
  const fixture = await setUpViews(t, { config, rfb: { pages: { '/default/s1/a': { body: 'a page' } } } })
  const { gateway, admin, bearer } = fixture
  const inTheWay = segmentPath(auditPath, 0)
  writeFileSync(inTheWay, 'another file')
  const target = { session: 'default/assistant/another' }
  const fill = () => admin('POST', '/v1/revocations', { target, reason: REASON })
  await until(async () => {
    await Promise.all(Array.from({ length: CHANGES_AT_ONCE }, fill))
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
    return /^plat_gateway_audit_errors_total(?:\{.*\})? [1-9]/m.test(metrics)
  }, 'a ledger that cannot be written')
  const page = async () => {
    const url = `${gateway.adminUrl}/v1/sessions/${encodeURIComponent(SESSION)}/view/page/a`
    return (await fetch(url, { headers: { authorization: await bearer(null) } })).status
  }
  return { ...fixture, page, mend: () => rm(inTheWay) }
}

test('with auditFailurePolicy closed nothing is shown, and nothing reaches the sandbox, while the ledger cannot be written', async (t) => {
  const { refused, view, page, rfb, mend } = await setUpBroken(t, 'closed')
  const unavailable = { status: 503, error: 'audit_unavailable' }
  assert.deepEqual(await refused('watch'), unavailable)
  assert.deepEqual(await refused('control'), unavailable)
  assert.equal(await page(), 503)
  assert.deepEqual([rfb.opened, rfb.requests], [[], []])
  await mend()
  await until(() => view('watch').then(Boolean, () => false), 'a view, once the ledger can be written')
})

test('with auditFailurePolicy open views are shown while the ledger cannot be written', async (t) => {
  const { view, page, rfb } = await setUpBroken(t, 'open')
  await view('control')
  assert.equal(await page(), 200)
  assert.deepEqual([rfb.opened.length, rfb.requests.length], [1, 1])
})

test('no admin of one tenant views a session of another, and the records are in the ledger of its tenant alone', async (t) => {
  const rfb = await startRfbServer()
  t.after(() => rfb.close())
  const liveView = { enabled: true, endpointTemplate: `${rfb.url}/{namespace}/{session}` }
  const { gateway, token, call, bearer, ledger } = await setUpTenants(t, { config: { liveView } })
  for (const one of [RED, BLUE]) await call(token(one), `${one.name}-notes`, { text: 'once' })
  const open = async (mode: string, { name, namespace }: TestTenant, user: string) => {
    const id = encodeURIComponent(`${namespace}/${name}-agent/${name}-session`)
    return openViewer(`${gateway.adminUrl}/v1/sessions/${id}/view/${mode}`, { authorization: await bearer(user) })
  }
  for (const [mode, user] of [
    ['watch', 'blue-auditor'],
    ['watch', 'blue-admin'],
    ['control', 'blue-admin'],
    ['control', 'blue-ns-admin'],
  ] as const) {
    const opened = await open(mode, RED, user)
    assert.deepEqual('status' in opened && [opened.status, opened.body.error], [404, 'not_found'], `${mode} ${user}`)
  }
  assert.equal(rfb.opened.length, 0)
  const viewer = await open('control', RED, 'red-admin')
  if (!('greet' in viewer)) assert.fail(JSON.stringify(viewer))
  await viewer.greet()
  viewer.socket.close()
  await until(() => ledger('red').includes('"view.end"'), 'the end of the view')
  assert.match(ledger('red'), /"view\.begin"/)
  for (const other of ['blue', '']) assert.doesNotMatch(ledger(other), /"view\./)
})
