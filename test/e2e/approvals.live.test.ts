import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { startUp, type Up } from '@plat/cli'
import { wholeLines } from '@plat/testkit/ledger'
import { denialOf, passed } from '@plat/testkit/mcp/denial'
import { until } from '@plat/testkit/until'
import { startNotes } from '../../examples/quickstart/notes/server.ts'

/** Approval timeout of the test that waits for it, in seconds: too short for other tests. */
const LIFETIME_SECONDS = 2
/** A clock that counts whole milliseconds may be so much ahead of one that does not. */
const ROUNDING_MS = 2
/** Milliseconds after which an impatient client gives up; the official client's own default is a minute. */
const IMPATIENT_MS = 2_600

const bin = fileURLToPath(new URL('../../apps/cli/bin/plat.mjs', import.meta.url))

let up: Up
let dir = ''
const closers: (() => unknown)[] = []

const agents = [
  'patient',
  'impatient',
  'modern',
  'denied',
  'expired',
  'changed',
  'revoked',
  'raw',
  'typed',
  'hurried',
] as const
type Agent = (typeof agents)[number]

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  closers.push(() => rm(dir, { recursive: true }))
  const notes = await startNotes({ port: 0, dir: join(dir, 'notes') })
  closers.push(() => notes.close())
  await put('resources/mcpservers/default/notes.yaml', { kind: 'MCPServer', name: 'notes', spec: { url: notes.url } })
  for (const name of agents) {
    const own = name === 'hurried' ? { refusals: 'result', approvals: { answerAfterSeconds: 1 } } : {}
    const spec = { image: 'example.com/a:1', tier: 'tier-0', policyRef: name, tools: [{ name: 'notes' }], ...own }
    await put(`resources/agents/default/${name}.yaml`, { kind: 'Agent', name, spec })
    await policy(name, 'require_approval')
  }
  up = await startIn(dir, { approvalPreview: { mode: 'full' }, policyReloadSeconds: 1 })
  closers.push(() => up.stop())
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

async function startIn(home: string, own: object): Promise<Up> {
  // Calls wait until the test decides, however slow the machine is.
  await writeFile(join(home, 'gateway.json'), JSON.stringify({ approvalAnswerAfterSeconds: 600, ...own }))
  return startUp({ dir: home, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
}

async function put(path: string, { kind, name, spec }: { kind: string; name: string; spec: object }): Promise<void> {
  const file = join(dir, path)
  await mkdir(dirname(file), { recursive: true })
  const metadata = { name, namespace: 'default' }
  // Written as a whole: a reader of an empty file finds no policy, and denies the calls that wait.
  const draft = join(dirname(file), `.${name}`)
  await writeFile(draft, JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind, metadata, spec }))
  await rename(draft, file)
}

/** One policy for each agent, so that tests do not meet. */
function policy(agent: Agent, action: string, name = 'delete'): Promise<void> {
  const rules = [
    { name: 'rest', action: 'allow', match: { tools: ['add_note', 'read_note', 'list_notes'] } },
    { name, action, match: { tools: ['delete_note'] }, reason: `${action} by the test` },
  ]
  return put(`resources/toolpolicies/default/${agent}.yaml`, { kind: 'ToolPolicy', name: agent, spec: { rules } })
}

async function token(agent: Agent, on = up): Promise<string> {
  const response = await fetch(`${on.env.PLAT_IDENTITY_URL}/v1/token`, {
    method: 'POST',
    headers: { authorization: `Bearer ${on.env.PLAT_BROKER_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ namespace: 'default', agent, session: 's', scopes: ['tools:notes'], tier: 'tier-0' }),
  })
  const minted = await members(response)
  return String(minted.token)
}

async function members(response: Response): Promise<Readonly<Record<string, unknown>>> {
  const body: unknown = await response.json()
  assert.ok(typeof body === 'object' && body !== null)
  return Object.fromEntries(Object.entries(body))
}

async function clientOf(agent: Agent, mode: 'legacy' | { pin: '2026-07-28' } = 'legacy', on = up): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  // The end of a stream is reported here as well; the tests check the call.
  client.onerror = () => {}
  const headers = { authorization: `Bearer ${await token(agent, on)}` }
  const address = new URL(`${on.env.PLAT_GATEWAY_URL}/mcp/notes`)
  await client.connect(new StreamableHTTPClientTransport(address, { requestInit: { headers } }))
  return client
}

async function remove(client: Client, name: string, options: { timeout?: number } = {}): Promise<string> {
  const result = await passed(client.callTool({ name: 'delete_note', arguments: { name } }, options))
  return JSON.stringify(result.content)
}

async function api(method: string, path: string, body?: object, on = up) {
  const response = await fetch(on.env.PLAT_GATEWAY_URL + path, {
    method,
    headers: { authorization: `Bearer ${on.env.PLAT_ADMIN_TOKEN}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: await members(response) }
}

/** Approvals of an agent in a state, newest first. */
async function approvals(agent: Agent, state: string, on = up): Promise<{ id: string }[]> {
  const { body } = await api('GET', `/v1/approvals?agent=${agent}&state=${state}`, undefined, on)
  assert.ok(Array.isArray(body.items))
  return body.items
}

async function pending(agent: Agent): Promise<string> {
  let found: { id: string }[] = []
  await until(async () => {
    found = await approvals(agent, 'pending')
    return found.length > 0
  }, 'a pending approval')
  return found[0]?.id ?? ''
}

/** Generation of the policies that are in force. */
async function generation(): Promise<number> {
  const metrics = await (await fetch(`${up.env.PLAT_GATEWAY_URL}/metrics`)).text()
  return Number(/^plat_gateway_policy_revision (\d+)$/m.exec(metrics)?.[1])
}

const approve = async (agent: Agent) => api('POST', `/v1/approvals/${await pending(agent)}/approve`, { reason: '' })

/** Kinds, codes and results of an agent's deletions, in the order of the ledger; `approval` records apart. */
async function recorded(agent: Agent, on = up): Promise<string[]> {
  const records = wholeLines(join(on.home.state, 'audit.jsonl'))
    .map((line) => JSON.parse(line).rec)
    .filter((rec) => rec.agent === agent && rec.tool === 'delete_note')
  return records
    .filter((rec) => rec.kind !== 'approval')
    .map((rec) => [rec.kind, rec.code ?? rec.result].filter(Boolean).join(' '))
}

/** The record of a call follows its answer, so it may take a moment. */
async function assertRecorded(agent: Agent, expected: readonly string[], on = up): Promise<void> {
  await until(async () => (await recorded(agent, on)).length >= expected.length, 'a record is missing')
  assert.deepEqual(await recorded(agent, on), expected)
}

/** Runs the command line as a person would. */
function plat(...args: string[]): Promise<{ readonly code: number | null; readonly text: string }> {
  const child = spawn(process.execPath, [bin, 'approvals', ...args, '-dir', dir], { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  const collect = (chunk: Buffer) => {
    text += chunk
  }
  child.stdout.on('data', collect)
  child.stderr.on('data', collect)
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, text })))
}

describe('held calls through a running plat', { concurrency: true }, () => {
  test('a call that is approved while it waits passes; a decision is final', async () => {
    const client = await clientOf('patient')
    await client.callTool({ name: 'add_note', arguments: { name: 'a', text: 'x' } })
    const call = remove(client, 'a')
    const id = await pending('patient')
    const { body } = await api('GET', `/v1/approvals/${id}`)
    assert.equal(body.server, 'notes')
    assert.equal(body.tool, 'delete_note')
    assert.deepEqual(body.preview, { mode: 'full', text: '{"name":"a"}', truncated: false })
    const { status, body: decided } = await api('POST', `/v1/approvals/${id}/approve`, { reason: 'fine' })
    assert.deepEqual([status, decided.state], [200, 'approved'])
    assert.match(await call, /Deleted/)
    const again = await api('POST', `/v1/approvals/${id}/deny`, {})
    assert.deepEqual([again.status, again.body.error], [409, 'conflict'])
    await assertRecorded('patient', ['intent', 'outcome completed'])
    await client.close()
  })

  for (const [agent, mode] of [
    ['impatient', 'legacy'],
    ['modern', { pin: '2026-07-28' }],
  ] as const) {
    test(`approved after the ${agent} client gave up, its next identical call passes once and a third is held`, async () => {
      const client = await clientOf(agent, mode)
      await client.callTool({ name: 'add_note', arguments: { name: agent, text: 'x' } })
      await assert.rejects(remove(client, agent, { timeout: IMPATIENT_MS }), /time/i)
      await until(async () => (await recorded(agent)).length === 1, 'the call goes on without its caller')
      assert.equal((await approve(agent)).status, 200)
      assert.match(await remove(client, agent), /Deleted/)
      const third = remove(client, agent, { timeout: IMPATIENT_MS })
      third.catch(() => {})
      await pending(agent)
      await assert.rejects(third, /time/i)
      await assertRecorded(agent, ['outcome cancelled', 'intent', 'outcome completed', 'outcome cancelled'])
      await client.close()
    })
  }

  test('a denial reaches the caller with its reason', async () => {
    const client = await clientOf('denied')
    const call = assert.rejects(remove(client, 'a'), /an approver denied this call: keep it/)
    const id = await pending('denied')
    assert.equal((await api('POST', `/v1/approvals/${id}/deny`, { reason: 'keep it' })).body.state, 'denied')
    await call
    await assertRecorded('denied', ['decision approval_denied'])
    await client.close()
  })

  test('an approval without a decision expires', async (t) => {
    const home = await mkdtemp(join(tmpdir(), 'plat-'))
    await cp(join(dir, 'resources'), join(home, 'resources'), { recursive: true })
    const hasty = await startIn(home, { approvalTimeoutSeconds: LIFETIME_SECONDS })
    t.after(async () => {
      await hasty.stop()
      await rm(home, { recursive: true })
    })
    const client = await clientOf('expired', 'legacy', hasty)
    const began = performance.now()
    await assert.rejects(remove(client, 'a'), /expired/)
    assert.ok(performance.now() - began >= LIFETIME_SECONDS * 1000 - ROUNDING_MS)
    await assertRecorded('expired', ['decision approval_expired'], hasty)
    await until(async () => (await approvals('expired', 'expired', hasty)).length === 1, 'the approval to expire')
    await client.close()
  })

  test('a policy that changed meanwhile judges the call: allow passes, another rule is stale, deny ends it at once', async () => {
    const client = await clientOf('changed')
    const change = async (action: string, name?: string) => {
      const before = await generation()
      await policy('changed', action, name)
      await until(async () => (await generation()) > before, 'the policy is not in force')
    }
    const allowed = remove(client, 'a')
    await pending('changed')
    await change('allow')
    await approve('changed')
    assert.match(await allowed, /a/)

    await change('require_approval')
    const stale = assert.rejects(remove(client, 'b'), /policy now requires another approval/)
    await pending('changed')
    await change('require_approval', 'another')
    await approve('changed')
    await stale

    const denied = assert.rejects(remove(client, 'c'), /deny by the test/)
    await pending('changed')
    await change('deny')
    await denied
    await assertRecorded('changed', [
      'intent',
      'outcome completed',
      'decision approval_stale',
      'decision policy_denied',
    ])
    await client.close()
  })

  test('a revocation ends a pending call at once; nothing is forwarded, and it cannot be approved', async () => {
    const client = await clientOf('revoked')
    const call = assert.rejects(remove(client, 'a'), /revoked/)
    const id = await pending('revoked')
    const body = { target: { session: 'default/revoked/s' }, mode: 'revoke', reason: 'the test says so' }
    const { status, body: revocation } = await api('POST', '/v1/revocations', body)
    // The held call had ended before the revocation was answered, and with it what the client may have opened beside it.
    assert.equal(status, 201)
    assert.ok(Number(revocation.cut) >= 1, String(revocation.cut))
    await call
    await assertRecorded('revoked', ['decision revoked'])
    await until(async () => (await approvals('revoked', 'cancelled')).length === 1, 'the approval is still open')
    assert.equal((await api('POST', `/v1/approvals/${id}/approve`, {})).status, 409)
    await client.close()
  })

  test('plat approvals lists, shows, approves and denies from a terminal', async () => {
    const client = await clientOf('typed')
    await client.callTool({ name: 'add_note', arguments: { name: 'typed', text: 'x' } })
    const call = remove(client, 'typed')
    const id = await pending('typed')
    const list = await plat('list')
    assert.match(
      list.text,
      new RegExp(`${id} +pending +default/typed +notes/delete_note +delete +\\d+s +{"name":"typed"}`),
    )
    assert.match((await plat('show', id)).text, /state +pending[^$]*reason +require_approval by the test/)
    const approved = await plat('approve', id, '-reason', 'fine', '-o', 'json')
    assert.equal(JSON.parse(approved.text).quorum.votes[0].reason, 'fine')
    assert.match(await call, /Deleted/)
    const late = await plat('deny', id)
    assert.deepEqual(
      [late.code, late.text],
      [1, 'plat: the gateway refused: the approval is used already, or has expired\n'],
    )
    await client.close()
  })

  test('an Agent sets when its waiting calls are answered, and that refusals are results', async () => {
    // Shows D2.agent.refusals and D2.agent.approvals.answerAfterSeconds.
    const client = await clientOf('hurried')
    await client.callTool({ name: 'add_note', arguments: { name: 'hurried', text: 'x' } })
    const call = { name: 'delete_note', arguments: { name: 'hurried' } }
    const { isError, _meta } = await client.callTool(call)
    const [{ id } = { id: '' }] = await approvals('hurried', 'pending')
    const { error, approvalId } = Object(_meta?.['plat.dev/denial'])
    assert.deepEqual([isError, error, approvalId], [true, 'approval_pending', id])
    await approve('hurried')
    assert.match(await remove(client, 'hurried'), /Deleted/)
    await client.close()
  })

  test('an early response is approval_pending with the ID; numbers that differ only in precision are distinct', async () => {
    const bearer = await token('raw')
    const ask = async (n: string) => {
      const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/mcp/notes`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${bearer}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2025-11-25',
          prefer: 'wait=0',
        },
        body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete_note","arguments":{"name":"a","n":${n}}}}`,
      })
      return denialOf(await members(response)).data
    }
    const first = await ask('9007199254740993')
    assert.equal(first.error, 'approval_pending')
    assert.ok(Number(first.retryAfterMs) > 0)
    assert.equal((await ask('9007199254740993')).approvalId, first.approvalId)
    for (const other of ['9007199254740992', '"9007199254740993"']) {
      assert.notEqual((await ask(other)).approvalId, first.approvalId)
    }
  })
})
