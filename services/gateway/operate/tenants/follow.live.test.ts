import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import { logTo } from '../../testing/started.ts'
import { BLUE, PREFIX, RED, type TestTenant } from './testing/files.ts'
import { setUpTenants, type TwoTenants } from './testing/two-tenants.ts'

async function metric({ gateway }: TwoTenants, name: string): Promise<number> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
  return Number(new RegExp(`^plat_gateway_${name} (\\S+)$`, 'm').exec(text)?.[1])
}

async function reads({ admin }: TwoTenants, as: string, path: string): Promise<string> {
  const { status, text } = await admin(`GET ${path}`, { as })
  return status === 200 ? text : String(status)
}

test('a file that cannot be used leaves the tenants in force, and says so until it can', async (t) => {
  // Shows D3.metric.plat_gateway_tenants_file_ok.
  const lines: string[] = []
  const fixture = await setUpTenants(t, { tenants: [RED, BLUE], log: logTo(lines) })
  const { put, list, call, token, ledgerPath } = fixture
  const broken = [
    ['', 'ends too early'],
    ['{"tenants": [{"name": "red"}]}', 'tenants[0].namespaces: must be a list'],
    ['{"tenants": [{"name": "../blue", "namespaces": ["red-1"]}]}', 'tenants[0].name: must be lower-case letters'],
  ] as const
  for (const [text, problem] of broken) {
    await put('tenants.json', text)
    await until(() => lines.join('\n').includes(problem), 'the file to be refused')
    assert.equal(await metric(fixture, 'tenants_file_ok'), 0)
    for (const one of [RED, BLUE]) assert.match((await call(token(one), `${one.name}-notes`)).text, /done/)
  }
  assert.match(lines.join('\n'), /tenantsFile is refused: the tenants read before stay in force/)
  // A ledger that cannot be opened refuses the whole file: a tenant without a ledger would be recorded elsewhere.
  await writeFile(`${fixture.dir}/tenants/re`, 'a file where the folder belongs')
  await list([RED, BLUE, PREFIX])
  await until(() => lines.join('\n').includes('EEXIST'), 'the file to be refused')
  assert.equal(await metric(fixture, 'tenants'), 2)
  await list([RED])
  await until(async () => (await metric(fixture, 'tenants_file_ok')) === 1, 'the file to be read')
  assert.equal(existsSync(ledgerPath('red')), true)
})

test('a tenant that is added gets a ledger before its first call, and one that is removed is refused with its roles', async (t) => {
  const tenants: readonly TestTenant[] = [RED, PREFIX]
  const fixture = await setUpTenants(t, { tenants })
  const { list, call, token, admin, ledger, ledgerPath } = fixture
  await list([RED])
  await until(async () => (await metric(fixture, 'tenants')) === 1, 'the tenant to be removed')
  assert.equal((await call(token(PREFIX), 're-notes')).status, 401)
  assert.equal((await admin('GET /v1/audit/head', { as: 're-auditor' })).status, 403)
  assert.equal((await admin('GET /v1/sessions', { as: 're-viewer' })).status, 403)
  await list([RED, PREFIX])
  await until(async () => (await metric(fixture, 'tenants')) === 2, 'the tenant to be added')
  assert.match((await call(token(PREFIX), 're-notes')).text, /done/)
  assert.equal((await admin('GET /v1/audit/head', { as: 're-auditor' })).status, 200)
  assert.ok(existsSync(ledgerPath('re')))
  assert.match(ledger('re'), /cerise/)
  assert.doesNotMatch(ledger('red'), /cerise/)
})

test('a namespace that moves to another tenant takes nothing along: live calls end, and what was done stays where it was', async (t) => {
  const fixture = await setUpTenants(t)
  const { put, call, token, admin } = fixture
  const waiting = call(token(RED), 'red-notes', { tool: 'pay', text: 'crimson-waiting' })
  assert.match((await call(token(RED, { plat_session: 'crimson-1' }), 'red-notes', { text: 'crimson' })).text, /done/)
  await until(async () => /pending/.test(await reads(fixture, 'red-viewer', '/v1/approvals')), 'the approval')
  const { items } = (await admin('GET /v1/approvals', { as: 'red-viewer' })).body
  await put(
    'tenants.json',
    JSON.stringify({
      tenants: [
        { name: 'red', namespaces: [] },
        { name: 'blue', namespaces: ['blue-1', 'red-1'] },
      ],
    }),
  )
  assert.match((await waiting).text, /belongs to another tenant now/)
  // The key of the token is that of the earlier tenant.
  assert.equal((await call(token(RED), 'red-notes')).status, 401)
  for (const path of [
    '/v1/approvals',
    '/v1/sessions',
    '/v1/audit/records',
    '/v1/budgets',
    '/v1/sessions/red-1%2Fred-agent%2Fcrimson-1/timeline',
  ])
    assert.doesNotMatch(await reads(fixture, 'blue-admin', path), /crimson-(?!policy|budget)/, path)
  assert.equal((await admin(`GET /v1/approvals/${items[0].id}`, { as: 'blue-viewer' })).status, 404)
  assert.equal((await admin(`POST /v1/approvals/${items[0].id}/deny`, { as: 'blue-approver' })).status, 404)
  assert.match(await reads(fixture, 'red-viewer', '/v1/sessions'), /crimson-1/)
  assert.match(await reads(fixture, 'red-auditor', '/v1/audit/records'), /crimson-1/)
  assert.match(await reads(fixture, 'red-auditor', '/v1/sessions/crimson-1/timeline'), /crimson-1/)
  assert.match(await reads(fixture, 'fleet-viewer', '/v1/sessions'), /crimson-1/)
  assert.match(await reads(fixture, 'fleet-auditor', '/v1/audit/records?tenant=red'), /crimson-1/)
})
