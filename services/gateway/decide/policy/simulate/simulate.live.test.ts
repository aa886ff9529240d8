import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { callTool } from '@plat/testkit/mcp/call'
import { json, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { testPolicy } from '@plat/testkit/policies'
import { writeSegments } from '@plat/testkit/segments'
import { until } from '@plat/testkit/until'
import { CandidatePolicies } from './candidate.ts'
import { type Replay, simulate } from './simulate.ts'
import type { SimulatedCall, Simulation } from './view.ts'

const TOKEN = 'the-admin-token-of-this-test-1234567890'
const dir = tempFolder()
let upstream: ScriptedUpstream
let gateway: GatewayProcess
let ended = 0

before(async () => {
  upstream = await startScriptedUpstream()
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  gateway = await start()
})
after(async () => {
  await gateway.close()
  await upstream.close()
})

const start = (more: object = {}) =>
  startGatewayProcess({
    servers: { notes: upstream.url },
    denied: ['forbidden'],
    config: { auditPath: join(dir, 'audit.jsonl'), ...more },
    env: { PLAT_ADMIN_TOKEN: TOKEN },
  })

async function call(tool: string, args?: object): Promise<void> {
  await callTool(gateway, 'notes', tool, args)
  ended++
  await until(() => lastRecords().length === ended, 'the record of the call')
}

function lastRecords() {
  const lines = wholeLines(join(dir, 'audit.jsonl'))
  return lines.map((line) => JSON.parse(line).rec).filter(({ kind }) => kind === 'outcome' || kind === 'decision')
}

const candidate = (...rules: object[]) => ({
  version: 1,
  generation: 2,
  revision: 'sha256:candidate',
  policies: [testPolicy({ name: 'default/new', rules: rules.map((rule, at) => ({ name: `r${at}`, ...rule })) })],
})

async function ask(body: object, token = TOKEN) {
  const response = await fetch(`${gateway.url}/v1/policies/simulate`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, answer: JSON.parse(await response.text()) }
}

async function simulated(policies: object, more: object = {}): Promise<Simulation> {
  const { status, answer } = await ask({ policies, ...more })
  assert.equal(status, 200, JSON.stringify(answer))
  return answer
}

const verdicts = ({ items }: Simulation) => items.map(({ tool, verdict, would }) => [tool, verdict, would?.action])
const allow = { action: 'allow' }
const noBig = { action: 'deny', when: 'args.size > 10', match: { tools: ['write'] } }

test('recorded calls are judged by policies that are not in force: same, changed, or a matter of arguments', async () => {
  await call('read')
  await call('write', { size: 11 })
  await call('forbidden', { size: 1 })
  const same = await simulated(candidate(allow, { action: 'deny', match: { tools: ['forbidden'] } }))
  assert.deepEqual(same.counts, { same: 3, changed: 0, needs_arguments: 0, skipped: 0 })
  const some = await simulated(candidate(allow, noBig))
  assert.deepEqual(verdicts(some), [
    ['read', 'same', 'allow'],
    ['write', 'needs_arguments', undefined],
    ['forbidden', 'changed', 'allow'],
  ])
  const [, write, forbidden] = some.items
  assert.deepEqual(write?.possible, ['allow', 'deny'])
  assert.deepEqual(forbidden?.was, { action: 'deny', policy: 'default/assistant', rule: 'denied' })
  assert.deepEqual(forbidden?.would, {
    action: 'allow',
    policy: 'default/new',
    rule: 'r0',
    reason: 'rule r0 of policy default/new',
  })
  const withoutPolicies = await simulated({ ...candidate(allow), policies: [] }, { show: ['changed'] })
  assert.deepEqual(verdicts(withoutPolicies), [
    ['read', 'changed', 'deny'],
    ['write', 'changed', 'deny'],
  ])
})

test('a simulation goes on page by page, is of a time and of an agent, and leaves no trace', async () => {
  const before = wholeLines(join(dir, 'audit.jsonl'))
  const metrics = async () => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text()
    return text.split('\n').filter((line) => /decisions_total|policies_loaded|policy_revision|dryrun/.test(line))
  }
  const counted = await metrics()
  const policies = candidate(allow)
  const items: SimulatedCall[] = []
  let pages = 0
  for (let cursor: string | null = '0'; cursor !== null; pages++) {
    const page: Simulation = await simulated(policies, { limit: 2, cursor })
    items.push(...page.items)
    cursor = page.nextCursor
  }
  assert.ok(pages > 2)
  assert.deepEqual(items, (await simulated(policies)).items)
  const ahead = new Date(Date.now() + 60_000).toISOString()
  assert.deepEqual(verdicts(await simulated(policies, { since: ahead })), [])
  assert.deepEqual(verdicts(await simulated(policies, { until: '2026-01-01T00:00:00Z' })), [])
  assert.deepEqual(verdicts(await simulated(policies, { agent: 'default/other' })), [])
  assert.equal((await simulated(policies, { agent: 'default/assistant' })).items.length, 3)
  assert.deepEqual(await metrics(), counted)
  assert.deepEqual(wholeLines(join(dir, 'audit.jsonl')), before)
})

test('policies with a mistake are refused by its name, and so is who may not read the ledger', async () => {
  const refused = async (body: object, token?: string) => {
    const { status, answer } = await ask(body, token)
    return `${status} ${answer.error}: ${answer.message}`
  }
  assert.match(await refused({}), /^400 invalid_request: /)
  assert.match(await refused({ policies: { version: 1 } }), /^400 invalid_request: policies: generation/)
  const broken = candidate({ ...allow, when: 'args.' })
  assert.match(await refused({ policies: broken }), /^400 invalid_request: policies: policies\[0\].rules\[0\].when: /)
  assert.match(await refused({ policies: candidate(allow), since: '2026-01-01T' }), /^400 invalid_request: since/)
  assert.match(await refused({ policies: candidate(allow), since: '2026-99-01T00:00:00Z' }), /^400 .*since: must be/)
  assert.match(await refused({ policies: candidate(allow) }, 'somebody'), /^401 unauthenticated/)
})

test('arguments that were captured are judged as they were captured', async () => {
  await gateway.close()
  const key = join(dir, 'key')
  await writeFile(key, randomBytes(32).toString('base64'))
  gateway = await start({ captureArgs: { enabled: true, dir: join(dir, 'captures'), key: `file://${key}` } })
  await call('write', { size: 12 })
  await call('write', { size: 9 })
  const written = async () => (await fetch(`${gateway.url}/metrics`)).text()
  await until(async () => /arg_captures_total\{outcome="written"\} 2/.test(await written()), 'both captures')
  const { items } = await simulated(candidate(allow, noBig))
  const writes = items.filter(({ tool }) => tool === 'write')
  assert.deepEqual(
    writes.map(({ verdict, would, captured }) => [verdict, would?.action, captured]),
    [
      ['needs_arguments', undefined, false],
      ['changed', 'deny', true],
      ['same', 'allow', true],
    ],
  )
})

test('a call that is not made is judged by the policies in force, or by others, with its arguments', async () => {
  const tried = async (body: object, token = TOKEN) => {
    const response = await fetch(`${gateway.url}/v1/policies/try`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ namespace: 'default', agent: 'assistant', server: 'notes', ...body }),
    })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  const before = lastRecords().length
  assert.equal((await tried({ tool: 'read' })).body.action, 'allow')
  const denied = (await tried({ tool: 'forbidden' })).body
  assert.deepEqual([denied.action, denied.code], ['deny', 'policy_denied'])
  assert.equal((await tried({ tool: 'read', server: 'nothing' })).body.code, 'unknown_server')
  const policies = candidate({ action: 'require_approval', when: 'args.n > 3' }, { action: 'allow' })
  for (const [n, action] of [
    [1, 'allow'],
    [4, 'require_approval'],
  ] as const)
    assert.equal((await tried({ tool: 'read', policies, arguments: { n } })).body.action, action)
  assert.equal((await tried({ tool: '' })).status, 400)
  assert.equal((await tried({ tool: 'read', policies: { version: 9 } })).status, 400)
  assert.equal((await tried({ tool: 'read' }, 'wrong')).status, 401)
  assert.equal(lastRecords().length, before)
})

test('a simulation says which records of its range left the disk, and were not evaluated', async () => {
  const path = join(tempFolder(), 'audit.jsonl')
  const { leave } = await writeSegments(path, { segments: 3, records: 12 })
  leave(0, { archive: 's3://bucket/one.jsonl', checkpoint: '{}' })
  leave(1, { archive: null, checkpoint: '{}' })
  const range = { from: 0, to: null, isFirst: true, limit: 1_000, agent: null, show: new Set<never>() }
  const currentToolOf = () => ({ sinks: [], alias: null })
  const parts = { ledgerOf: () => path, currentToolOf, captured: async () => null }
  const compiled = CandidatePolicies.compile({ ...candidate(allow), version: 1, policies: [] }, null)
  assert.ok(compiled instanceof CandidatePolicies)
  const of = (more: Partial<Replay>) =>
    simulate(compiled, { ...range, auditPath: path, sees: () => true, ...more }, parts)
  assert.deepEqual((await of({})).left, [{ first: 0, last: 25 }])
  assert.deepEqual((await of({ from: 30 })).left, [])
  assert.deepEqual((await of({ isFirst: false, from: 20 })).left, [])
})
