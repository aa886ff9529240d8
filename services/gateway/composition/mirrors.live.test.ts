import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { formatProblem } from '@plat/config'
import { systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import type { Rec } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { createMemoryJournal, soleLeadership } from '@plat/state'
import { KubernetesApiServer } from '@plat/testkit/kubernetes/api-server'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { mirroredAccount } from '../authn/token-vault/store/mirrored.ts'
import { scriptedVault, tokensOf } from '../authn/token-vault/testing/vault.ts'
import { testIdentity } from '../call/testing/identity.ts'
import { checkGatewayConfig } from '../config.ts'
import type { Revocation, RevocationEvent } from '../decide/revocations/format.ts'
import { mirroredRevocation } from '../decide/revocations/mirrored.ts'
import { Revocations } from '../decide/revocations/revocations.ts'
import { type MirrorSource, startMirrors } from '../operate/mirror/index.ts'
import { started } from '../testing/started.ts'

const API = '/apis/plat.dev/v1alpha1'
const HOME = 'plat-system'
const nothing: MirrorSource = { wanted: () => [], follow() {} }

/** An API server, and mirrors that write to it. */
async function setUp(t: TestContext) {
  const server = new KubernetesApiServer()
  await server.start()
  const clock = systemClock
  const dialer = createDialer({ clock, log: silentLog })
  const access = { server: server.url, namespace: HOME, credentials: async () => ({ headers: {}, trust: {} }) }
  const start = async (sources: { readonly revocations?: MirrorSource; readonly accounts?: MirrorSource }) => {
    const mirrors = await startMirrors({
      config: {
        revocationMirror: { enabled: sources.revocations !== undefined },
        tokenVault: { enabled: true, mirror: { enabled: sources.accounts !== undefined } },
        stateBackend: { type: 'file', schema: 'plat' },
      },
      ...{ revocations: nothing, accounts: nothing, ...sources },
      ...{ env: {}, access, dialer, clock, log: silentLog, leadership: soleLeadership(() => {}) },
    })
    t.after(() => mirrors?.close())
  }
  t.after(async () => {
    await dialer.close()
    await server.stop()
  })
  return { server, start }
}

function entry(id: string, target: Revocation['target'], more: Partial<Revocation> = {}): Revocation {
  return { id, target, mode: 'revoke', reason: '', createdAt: '2026-01-01T00:00:00Z', expiresAt: null, ...more }
}

/** Revocations with the metrics that they report. */
async function killSwitch(t: TestContext, file: string | null) {
  const active = new Map<string, number>()
  const revocations = new Revocations({
    journal: createMemoryJournal<RevocationEvent>(() => systemClock.now()),
    file: file === null ? null : { path: file, everyMs: 10 },
    mirrorNamespace: HOME,
    clock: systemClock,
    log: silentLog,
    live: { cut: () => 0 },
    record: (_: Rec) => {},
    metrics: { revoked() {}, active: (source, count) => void active.set(source, count), propagated() {}, listOk() {} },
  })
  await revocations.open()
  t.after(() => revocations.close())
  const source: MirrorSource = {
    wanted: () => revocations.breakglass().map((one) => mirroredRevocation(one, HOME)),
    follow: (tell) => revocations.follow(tell),
  }
  return { revocations, source, active }
}

test('break-glass entries stand in the cluster as AgentRevocations, and go when they are lifted', async (t) => {
  // Shows D3.cost.revocationMirror.enabled and D3.cost.revocationMirror.namespace.
  const { server, start } = await setUp(t)
  const { revocations, source } = await killSwitch(t, null)
  await revocations.revoke(entry('1', { session: 'team/a/s1' }, { reason: 'lost laptop' }), 'token:admin')
  await start({ revocations: source })
  const at = (namespace: string, id: string) =>
    server.get(`${API}/namespaces/${namespace}/agentrevocations/breakglass-${id}`)
  await until(() => at('team', '1') !== undefined, 'what was revoked before')
  const expiresAt = '2100-01-01T00:00:00Z'
  await revocations.revoke(entry('2', { user: 'mallory' }, { mode: 'suspend', expiresAt }), 'token:admin')
  await revocations.revoke(entry('3', { namespace: 'Not_A_Label' }), 'token:admin')
  await until(() => at(HOME, '2') !== undefined && at(HOME, '3') !== undefined, 'what names others')
  assert.deepEqual(at('team', '1')?.spec, {
    target: { session: 'team/a/s1' },
    mode: 'revoke',
    reason: 'lost laptop',
  })
  assert.deepEqual(at(HOME, '2')?.spec, { target: { user: 'mallory' }, mode: 'suspend', expiresAt })
  assert.deepEqual([at(HOME, '2')?.kind, at(HOME, '2')?.apiVersion], ['AgentRevocation', 'plat.dev/v1alpha1'])
  assert.equal(await revocations.lift('2', 'token:admin'), 'lifted')
  await until(() => at(HOME, '2') === undefined, 'the lifted one to go')
  assert.ok(at('team', '1') !== undefined)
})

test('a copy that comes back in the file counts once, and ends with what it is a copy of', async (t) => {
  const dir = tempFolder()
  const file = join(dir, 'revocations.json')
  const own = entry('1', { session: 'default/assistant/s1' })
  const copy = { ...own, id: 'AgentRevocation/default/breakglass-1' }
  // An object with such a name that another client creates is a separate entry.
  const strange = entry('AgentRevocation/other/breakglass-1', { user: 'mallory' })
  let written = 0
  const write = (...entries: readonly Revocation[]) => {
    const revocations = [...entries, entry(`mark-${++written}`, { user: 'nobody' })]
    return writeFile(file, JSON.stringify({ version: 1, revocations }))
  }
  await write()
  t.after(() => rm(dir, { recursive: true }))
  const { revocations, active } = await killSwitch(t, file)
  const who = { ...testIdentity, namespace: 'default', agent: 'assistant', session: 's1' }
  const ids = () => revocations.list().map(({ id, source }) => `${source} ${id}`)
  const taken = () => until(() => ids().includes(`file mark-${written}`), 'the file')
  await write(copy, strange)
  await taken()
  assert.equal(active.get('file'), 3, 'the copy alone, as after a restart without the journal')
  await revocations.revoke(own, 'token:admin')
  assert.deepEqual(ids().toSorted(), ['breakglass 1', `file ${strange.id}`, `file mark-${written}`])
  assert.equal(active.get('file'), 2)
  await write(copy, strange)
  await taken()
  assert.deepEqual(ids().toSorted(), ['breakglass 1', `file ${strange.id}`, `file mark-${written}`])
  assert.equal(revocations.judge(who)?.revoked, 'session')
  assert.equal(await revocations.lift('1', 'token:admin'), 'lifted')
  assert.equal(revocations.judge(who), null)
  await write(copy, strange)
  await taken()
  assert.equal(revocations.judge(who), null, 'the cluster does not have it yet')
  assert.equal(revocations.judge({ ...who, user: 'mallory' })?.revoked, 'user')
})

test('connected accounts stand in the cluster without their tokens, and go with them', async (t) => {
  // Shows D3.tokenVault.mirror.enabled and D3.tokenVault.mirror.namespace.
  const { server, start } = await setUp(t)
  const { vault, accounts, owner, clock } = await scriptedVault()
  await vault.connect(owner, tokensOf(clock, { expiresAt: Date.parse('2026-12-01T00:00:00Z') }))
  await start({
    accounts: {
      wanted: () => accounts.list().map((account) => mirroredAccount(account, 'people')),
      follow: (tell) => accounts.follow(tell),
    },
  })
  const [account = assert.fail('no account')] = accounts.list()
  const { name } = mirroredAccount(account, 'people')
  const there = () => server.get(`${API}/namespaces/people/connectedaccounts/${name}`)
  await until(() => there() !== undefined, 'the account')
  assert.deepEqual(there()?.spec, {
    user: 'ada',
    provider: 'hub',
    scopes: ['read'],
    expiresAt: '2026-12-01T00:00:00Z',
  })
  assert.doesNotMatch(JSON.stringify(there()), /first|r-0/)
  await vault.remove(account.account, 'removed')
  await until(() => there() === undefined, 'the removed one to go')
})

test('a gateway outside a cluster does not start with mirrors configured, and says why', async (t) => {
  const off = started(t, { revocationMirror: { enabled: true } }, true)
  await assert.rejects(off, /^Error: revocationMirror: not in a cluster: KUBERNETES_SERVICE_HOST/)
})

test('a namespace that cannot be one is refused', () => {
  const config = { revocationMirror: { namespace: 'Plat_System' }, tokenVault: { mirror: { namespace: 'a.b' } } }
  const { problems } = checkGatewayConfig(JSON.stringify(config), { exists: () => true })
  const lines = problems.map(formatProblem).join('\n')
  for (const key of ['revocationMirror.namespace', 'tokenVault.mirror.namespace']) assert.ok(lines.includes(key), lines)
})
