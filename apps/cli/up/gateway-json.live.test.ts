import assert from 'node:assert/strict'
import { mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { homeOf } from '../shared/home.ts'
import { printed, putResource } from '../testing/commands.ts'
import { tokenMint } from '../token/mint.ts'
import { startUp, type Up } from './up.ts'

const dir = tempFolder()
const PROFILE = { dlpProfiles: { contacts: { detectors: ['email'] } }, dlp: { servers: { notes: 'contacts' } } }
let upstream: ScriptedUpstream
let up: Up
let token = ''
const slowCall = Promise.withResolvers<void>()

before(async () => {
  upstream = await startScriptedUpstream()
  upstream.answers(async ({ body }, response) => {
    const { id, params } = JSON.parse(body)
    // A slow call is in progress while the gateway ends.
    if (params?.arguments?.slow === true) {
      slowCall.resolve()
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
    const result = { content: [{ type: 'text', text: 'Write to ada@example.com.' }] }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  await putResource(dir, 'mcpservers/default/notes.yaml', 'MCPServer', { url: upstream.url })
  await putResource(dir, 'agents/default/assistant.yaml', 'Agent', { policyRef: 'all', tools: [{ name: 'notes' }] })
  const once = { name: 'once', action: 'allow', match: { tools: ['once'] } }
  const rules = [
    { ...once, rateLimit: { count: 1, seconds: 86_400, per: 'session' } },
    { name: 'a', action: 'allow' },
  ]
  await putResource(dir, 'toolpolicies/default/all.yaml', 'ToolPolicy', { rules })
  up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  const given = { dir, agent: 'assistant', session: 's', scope: [], format: 'token' } as const
  token = (await printed((output) => tokenMint(given, output))).text
})

after(async () => {
  await up.stop()
  await upstream.close()
})

async function read(args: object = {}, name = 'read'): Promise<string> {
  const params = { name, arguments: args }
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/mcp/notes`, { method: 'POST', headers, body })
  return JSON.parse(await response.text()).result.content[0].text
}

async function changed(keys: object): Promise<readonly string[]> {
  await writeFile(join(dir, 'gateway.json'), JSON.stringify(keys))
  return await up.changes()
}

test('an edit of gateway.json is in force at the same address, and a call in progress ends before', async () => {
  assert.equal(await read(), 'Write to ada@example.com.')
  assert.equal(await read({}, 'once'), 'Write to ada@example.com.')
  const slow = read({ slow: true })
  await slowCall.promise
  assert.deepEqual(await changed(PROFILE), [
    'gateway.json is new (dlpProfiles, dlp), and is in force: the gateway was started again',
  ])
  assert.equal(await slow, 'Write to ada@example.com.')
  assert.equal(await read(), 'Write to [REDACTED:email].')
  assert.match(await read({}, 'once'), /once was not run: .*the limit of 1 calls/, 'counters remain')
  const kubeconfig = await readFile(homeOf(dir).kubeconfig, 'utf8')
  assert.match(kubeconfig, /server: https:\/\/127\.0\.0\.1:\d+/)
})

test('with keys that it does not start with, the gateway runs on with the previous ones', async () => {
  await changed(PROFILE)
  const [line = '', ...more] = await changed({ sessionBudgetUSD: 1, auditPath: join(dir, 'resources') })
  assert.match(
    line,
    /^gateway\.json has changed \(.*auditPath.*\), and is not in force: .+; the gateway runs on with the previous file$/,
  )
  assert.deepEqual(more, [])
  assert.equal(await read(), 'Write to [REDACTED:email].')
  assert.deepEqual(await changed(PROFILE), ['gateway.json is as it was before, and in force'])
})

test('an address, and a currency in which resources are rendered, need a restart of plat up', async () => {
  const listen = await changed({ ...PROFILE, listen: '127.0.0.1:1' })
  assert.deepEqual(listen, ['gateway.json has changed (listen), and is not in force: restart plat up (listen)'])
  const [line = ''] = await changed({ ...PROFILE, budgetCurrency: 'EUR' })
  assert.match(line, /is not in force: restart plat up \(another currency of budgets\)$/)
  assert.equal(await read(), 'Write to [REDACTED:email].')
})

test('a file that is half written, empty, a folder, huge or a link to another file never takes the redaction away', async () => {
  await changed(PROFILE)
  const path = join(dir, 'gateway.json')
  const whole = JSON.stringify(PROFILE)
  const replace = async (make: (at: string) => Promise<unknown>) => {
    const next = join(dir, 'next')
    await rm(next, { recursive: true, force: true })
    await make(next)
    await rm(path, { recursive: true, force: true })
    await rename(next, path)
  }
  const edits: Readonly<Record<string, (at: string) => Promise<unknown>>> = {
    'half of it': (at) => writeFile(at, whole.slice(0, whole.length / 2)),
    empty: (at) => writeFile(at, ''),
    'a list': (at) => writeFile(at, '[]'),
    'the same member twice': (at) => writeFile(at, `{"dlp":{},${whole.slice(1)}`),
    'an unknown key': (at) => writeFile(at, JSON.stringify({ ...PROFILE, dlpProfile: {} })),
    nesting: (at) => writeFile(at, '['.repeat(100_000)),
    'a folder': (at) => mkdir(at),
    'a link to nothing': (at) => symlink(join(dir, 'nothing'), at),
    'a link to itself': (at) => symlink(path, at),
    'a device': (at) => symlink('/dev/zero', at),
  }
  for (const [edit, make] of Object.entries(edits)) {
    await replace(make)
    const lines = await up.changes()
    assert.match(await read(), /REDACTED/, `${edit}: ${lines.join()}`)
  }
  // Edits that follow one another faster than the gateway starts: the last one is in force.
  await rm(path, { recursive: true, force: true })
  const results: Promise<unknown>[] = []
  for (let at = 0; at < 20; at++) {
    await writeFile(path, at % 2 === 0 ? whole.slice(0, at) : JSON.stringify({ ...PROFILE, sessionBudgetUSD: at }))
    results.push(up.changes())
  }
  await Promise.allSettled(results)
  await changed(PROFILE)
  assert.match(await read(), /REDACTED/)
})
