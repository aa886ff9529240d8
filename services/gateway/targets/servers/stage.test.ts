import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import Type from 'typebox'
import {
  type BuiltinServer,
  builtinTool,
  type Call,
  deny,
  type Identity,
  isDenial,
  type Operation,
  Snapshots,
  toolText,
} from '../../call/index.ts'
import { testCall } from '../../call/testing/call.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { recordedMetrics } from '../../testing/metrics.ts'
import { createServers } from './index.ts'
import { buildRegistry, type Upstream } from './registry.ts'
import { createResolveStage, registrySlot } from './stage.ts'

const clock = new TestClock()

const identity: Identity = {
  ...testIdentity,
  scopes: new Set(['tools:notes', 'tools:missing']),
  expiresAt: clock.now(),
}

function callOf(snapshots: Snapshots, server: string, operation: Operation = 'mcp.call'): Call<'identity'> {
  return testCall({ identity }, { receivedAt: clock.now(), snapshot: snapshots.current, operation, server })
}

function ready() {
  const snapshots = new Snapshots()
  snapshots.publish(registrySlot, buildRegistry(null, { notes: 'http://notes/mcp', hidden: 'http://hidden/mcp' }))
  return { snapshots, stage: createResolveStage({ snapshots, credentials: { missing: () => null } }) }
}

test('the scope is checked before the name is looked up, and the challenge names it', async () => {
  const { snapshots, stage } = ready()
  for (const server of ['hidden', 'nobody-knows']) {
    const answer = await stage.admit(callOf(snapshots, server))
    assert.ok(isDenial(answer))
    assert.deepEqual([answer.code, answer.data], ['insufficient_scope', { scope: `tools:${server}` }])
  }
  const missing = await stage.admit(callOf(snapshots, 'missing'))
  assert.ok(isDenial(missing) && missing.code === 'unknown_server')
})

test('a target names server, key and, for calls only, the tool', async () => {
  const { snapshots, stage } = ready()
  const target = async (operation: Operation) => {
    const answer = await stage.admit(callOf(snapshots, 'notes', operation))
    assert.ok(typeof answer === 'object' && 'target' in answer)
    return [answer.target.key, answer.target.server, answer.target.tool]
  }
  assert.deepEqual(await target('mcp.call'), ['notes', 'notes', 'add'])
  assert.deepEqual(await target('mcp.get'), ['notes', 'notes', null])
})

test('a missing credential is a refusal after the name is resolved, before any hold or approval', async () => {
  const { snapshots } = ready()
  const requests: string[] = []
  const missing = ({ key, auth: { type } }: Pick<Upstream, 'key' | 'auth'>, { agent }: Identity) => {
    requests.push(`${key} ${type} ${agent}`)
    return deny('upstream_credential', 'none')
  }
  const stage = createResolveStage({ snapshots, credentials: { missing } })
  const answer = await stage.admit(callOf(snapshots, 'notes'))
  assert.ok(isDenial(answer) && answer.code === 'upstream_credential')
  const unknown = await stage.admit(callOf(snapshots, 'missing'))
  assert.ok(isDenial(unknown) && unknown.code === 'unknown_server')
  assert.deepEqual(requests, [`notes none ${identity.agent}`])
})

test('a built-in server checks its calls, cannot be replaced, and needs no credential', async () => {
  const snapshots = new Snapshots()
  const add = builtinTool({
    name: 'add',
    title: 'Add',
    description: 'Adds.',
    inputSchema: Type.Object({ n: Type.Integer() }),
    annotations: {},
    judge: ({ n }) => (n > 9 ? deny('policy_denied', 'too many') : null),
    run: async () => toolText('added'),
  })
  const server: BuiltinServer = {
    name: 'plat-sums',
    title: 'Sums',
    instructions: '',
    trust: 'untrusted',
    dataClass: 'public',
    labels: (tool) => ({ taints: tool === null ? [] : ['sums'], clearTaints: [], sinks: [] }),
    tools: ({ identity: { agent } }) => (agent === identity.agent ? [add] : []),
  }
  snapshots.publish(registrySlot, buildRegistry(null, { 'plat-sums': 'http://sly/mcp' }, [server]))
  const stage = createResolveStage({ snapshots, credentials: { missing: () => deny('upstream_credential', 'none') } })
  const resolved = async (own: Partial<Call>, who: Partial<Identity> = {}) => {
    const caller = { ...identity, scopes: new Set(['tools:plat-sums']), ...who }
    const call = {
      snapshot: snapshots.current,
      server: 'plat-sums',
      operation: 'mcp.call',
      name: 'add',
      ...own,
    } as const
    const answer = await stage.admit(testCall({ identity: caller }, call))
    return isDenial(answer)
      ? answer.code
      : typeof answer === 'object' && 'target' in answer
        ? answer.target
        : assert.fail()
  }
  const body = (argsValue: unknown): Call['body'] => ({ bytes: Buffer.from('{}'), value: {}, args: null, argsValue })
  const target = {
    kind: 'mcp',
    key: 'plat-sums',
    server: 'plat-sums',
    tool: 'add',
    trust: 'untrusted',
    dataClass: 'public',
    jurisdiction: null,
    labels: { taints: ['sums'], clearTaints: [], sinks: [] },
    builtin: true,
  }
  assert.deepEqual(await resolved({ body: body({ n: 1 }) }), target)
  assert.equal(await resolved({ body: body({ n: 10 }) }), 'policy_denied')
  assert.deepEqual(await resolved({ body: body({ n: 'no number' }) }), target)
  assert.equal(await resolved({ name: 'subtract' }), 'unknown_tool')
  assert.equal(await resolved({}, { agent: 'other' }), 'unknown_tool')
  assert.equal(await resolved({}, { scopes: new Set() }), 'insufficient_scope')
  const none = { tool: null, labels: { taints: [], clearTaints: [], sinks: [] } }
  assert.deepEqual(await resolved({ operation: 'mcp.list' }, { agent: 'other' }), { ...target, ...none })
})

test('operations of unsupported planes are refused', async () => {
  const { snapshots, stage } = ready()
  const answer = await stage.admit(callOf(snapshots, 'notes', 'model.generate'))
  assert.ok(isDenial(answer) && answer.code === 'not_built')
})

test('a long call ends when its name is removed or changed', async () => {
  const { snapshots, stage } = ready()
  const call = callOf(snapshots, 'notes')
  const answer = await stage.admit(call)
  assert.ok(typeof answer === 'object' && 'target' in answer)
  const resolved = { ...call, facts: { identity, target: answer.target } }
  assert.equal(stage.still?.(resolved), null)
  snapshots.publish(registrySlot, buildRegistry(null, { notes: 'http://notes/mcp' }))
  assert.equal(stage.still?.(resolved), null)
  snapshots.publish(registrySlot, buildRegistry(null, {}))
  assert.equal(stage.still?.(resolved)?.code, 'unknown_server')
})

test('the registry is read at start and on change; a missing or bad file keeps the servers known before', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  const upstreamsFile = join(dir, 'upstreams.json')
  const snapshots = new Snapshots()
  const { metrics, of } = recordedMetrics()
  const servers = createServers({
    config: { upstreamsFile, upstreams: { fixed: 'http://fixed/mcp' }, policyReloadSeconds: 2 },
    snapshots,
    credentials: { missing: () => null, follow: async () => {} },
    clock,
    log: silentLog,
    metrics,
  })
  const server = {
    url: 'http://notes/mcp',
    namespaces: [],
    implicit: false,
    trust: 'trusted',
    dataClass: 'internal',
    auth: { type: 'none' },
  }
  const text = JSON.stringify({ version: 1, servers: { 'default/notes': server }, bindings: {}, agentWeb: {} })
  try {
    await servers.check()
    assert.equal(servers.upstream(snapshots.current, 'fixed')?.url, 'http://fixed/mcp')
    await writeFile(upstreamsFile, text)
    await servers.check()
    await writeFile(upstreamsFile, '{')
    await servers.check()
    await rm(upstreamsFile)
    await servers.check()
    assert.equal(servers.upstream(snapshots.current, 'default/notes')?.url, 'http://notes/mcp')
    assert.deepEqual(of('plat_gateway_upstreams_configured'), ['1', '2'])
  } finally {
    servers.close()
    await rm(dir, { recursive: true })
  }
})

test('a server of plat up is known only to a gateway that was started with its socket', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  const upstreamsFile = join(dir, 'upstreams.json')
  const notes = {
    url: 'http://notes/mcp',
    namespaces: [],
    implicit: false,
    trust: 'trusted',
    dataClass: 'internal',
    auth: { type: 'none' },
  }
  const files = { ...notes, url: 'http://files.default.stdio.invalid/default/files', stdio: true }
  const inPod = { ...notes, url: 'https://plat-stdio-pod.default.svc:8443/default/pod', stdio: 'service' }
  const servers = { 'default/files': files, 'default/notes': notes, 'default/pod': inPod }
  await writeFile(upstreamsFile, JSON.stringify({ version: 1, servers, bindings: {}, agentWeb: {} }))
  const known = async (socket: { readonly stdioSocket?: string }) => {
    const snapshots = new Snapshots()
    const loaded = createServers({
      config: { upstreamsFile, upstreams: {}, policyReloadSeconds: 2 },
      snapshots,
      credentials: { missing: () => null, follow: async () => {} },
      clock,
      log: silentLog,
      metrics: recordedMetrics().metrics,
      ...socket,
    })
    await loaded.check()
    loaded.close()
    return Object.keys(servers).filter((key) => loaded.upstream(snapshots.current, key) !== null)
  }
  try {
    assert.deepEqual(await known({}), ['default/notes', 'default/pod'])
    assert.deepEqual(await known({ stdioSocket: '/s' }), ['default/files', 'default/notes', 'default/pod'])
  } finally {
    await rm(dir, { recursive: true })
  }
})
