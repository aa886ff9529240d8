import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { auditProof, auditVerifyProof } from './audit/proof.ts'
import { auditShow } from './audit/show.ts'
import { auditTail } from './audit/tail.ts'
import { auditVerify } from './audit/verify.ts'
import { costs } from './costs/costs.ts'
import { licenseShow } from './license/show.ts'
import { policyExplain } from './policy/explain.ts'
import { posture } from './posture/posture.ts'
import { run } from './run/run.ts'
import { findLedger } from './shared/ledger-source.ts'
import { printed, putResource } from './testing/commands.ts'
import { onlyAddresses } from './testing/remote.ts'
import { tokenMint } from './token/mint.ts'
import { startUp, type Up } from './up/up.ts'

let up: Up
let dir = ''
let decisionId = ''
let back = () => {}

before(async () => {
  dir = tempFolder()
  await putResource(dir, 'agents/default/assistant.yaml', 'Agent', { policyRef: 'p', tools: [{ name: 'notes' }] })
  const server = { url: 'http://127.0.0.1:9/mcp', toolPins: { mode: 'off' } }
  await putResource(dir, 'mcpservers/default/notes.yaml', 'MCPServer', server)
  const rules = [{ name: 'never', action: 'deny', match: { tools: ['read'] }, reason: 'nothing is read here' }]
  await putResource(dir, 'toolpolicies/default/p.yaml', 'ToolPolicy', { rules })
  await writeFile(join(dir, 'gateway.json'), '{"auditCheckpointIntervalSeconds": 1}')
  up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  const minted = await printed((output) =>
    tokenMint({ dir, agent: 'assistant', session: 's-1', scope: [], format: 'token' }, output),
  )
  const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${minted.text}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{}}}',
  })
  decisionId = /"decisionId":"([^"]+)"/.exec(await response.text())?.[1] ?? ''
  back = onlyAddresses(up)
})

after(async () => {
  back()
  await up.stop()
})

/** Output of a command here, as at a gateway elsewhere, and in the directory of the gateway. */
async function both(command: (dir: string | undefined) => Promise<{ code: number; text: string }>) {
  return { far: await command(undefined), near: await command(dir) }
}

test('the ledger of a remote gateway is shown, summed up and verified like a local file', async () => {
  const source = await findLedger(undefined, undefined)
  const decided = async () => (await printed((to) => auditShow({ ...source, id: decisionId, output: 'json' }, to))).text
  await until(async () => JSON.parse(await decided()).receipt !== null, 'a checkpoint over the decision')

  const tail = (from: string | undefined) =>
    printed(async (to) => auditTail({ ...(await findLedger(undefined, from)), lines: '1000', output: 'json' }, to))
  const { far, near } = await both(tail)
  assert.ok(near.text.startsWith(far.text) || far.text.startsWith(near.text), 'the same lines, byte for byte')
  const last = await printed(async (to) =>
    auditTail({ ...(await findLedger(undefined, undefined)), lines: '1', output: 'json' }, to),
  )
  assert.equal(last.text.split('\n').length, 1)
  const money = await both((from) =>
    printed(async (to) => costs({ ...(await findLedger(undefined, from)), output: 'json' }, to)),
  )
  assert.deepEqual(money.far, money.near)

  const verify = async (more: object = {}) =>
    printed(async (to) => auditVerify({ ...(await findLedger(undefined, undefined)), output: 'table', ...more }, to))
  const whole = await verify()
  assert.equal(whole.code, 0, whole.text)
  assert.match(whole.text, /^valid: .*\n[\s\S]*Checked with checkpoints and keys of the gateway itself/)
  const key = join(up.home.auditKeys, 'pub.pem')
  assert.equal((await verify({ key, strict: true })).code, 0)
  const foreign = join(up.home.cardKeys, 'pub.pem')
  assert.equal((await verify({ key: foreign })).code, 3, 'the keys of the gateway do not replace those given')
})

test('following the ledger of a gateway elsewhere prints new records until it is stopped', async () => {
  const stop = new AbortController()
  const lines: string[] = []
  const output = { out: (line: string) => void lines.push(line), err() {} }
  const source = await findLedger(undefined, undefined)
  const ended = auditTail({ ...source, lines: '0', follow: true, output: 'json' }, output, { stop: stop.signal })
  const revoke = () =>
    fetch(`${up.env.PLAT_ADMIN_URL}/v1/revocations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${up.env.PLAT_ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: '{"target": {"agent": "default/other"}}',
    })
  await revoke()
  await until(() => lines.some((line) => line.includes('"kind":"revocation"')), 'the record')
  stop.abort()
  assert.equal(await ended, 0)
})

test('plat audit show prints decision, policy, rule and receipt, which proves the record without the ledger', async () => {
  const source = await findLedger(undefined, undefined)
  const { code, text } = await printed((to) => auditShow({ ...source, id: decisionId, output: 'table' }, to))
  assert.equal(code, 0)
  assert.match(text, /policy +default\/p\nrule +never\nreason +nothing is read here/)
  assert.match(
    text,
    /receipt +of record \d+: proven by a signed checkpoint over \d+ records; plat audit proof \d+ prints it/,
  )
  const seq = /plat audit proof (\d+)/.exec(text)?.[1] ?? ''
  const file = join(tempFolder(), 'receipt.json')
  const proof = await printed((to) => auditProof({ ...source, seq, output: 'json' }, to))
  await writeFile(file, proof.text)
  const key = join(up.home.auditKeys, 'pub.pem')
  assert.equal((await printed((to) => auditVerifyProof({ file, key, output: 'table' }, to))).code, 0)
  assert.ok(JSON.parse(await readFile(file, 'utf8')).line.includes(decisionId))
  await assert.rejects(
    printed((to) => auditShow({ ...source, id: 'none', output: 'table' }, to)),
    /the ledger has no call none/,
  )
})

test('posture and license of a gateway elsewhere are those of its configuration', async () => {
  const risks = await both((from) => printed((to) => posture({ dir: from, output: 'json' }, to)))
  assert.deepEqual(risks.far, risks.near)
  assert.equal(risks.far.code, 3)
  const { far } = await both((from) => printed((to) => licenseShow({ dir: from, output: 'json' }, to)))
  assert.deepEqual([far.code, JSON.parse(far.text)], [0, { edition: 'community', state: 'none', nodes: 'unlimited' }])
  const keyed = printed((to) => licenseShow({ key: 'issuer.pem', output: 'json' }, to))
  await assert.rejects(keyed, { exitCode: 2, message: /-key needs the file of a license/ })
})

test('plat policy explain compares a decision of a gateway elsewhere with a folder of policies', async () => {
  const explain = (file?: string) => printed((to) => policyExplain({ id: decisionId, file, output: 'table' }, to))
  const alone = await explain()
  assert.equal(alone.code, 0)
  assert.match(alone.text, /recorded +deny[\s\S]*now +not judged: name the folder of the policies with -f/)
  assert.equal((await explain(dir)).code, 0, 'the same policies')
  const other = tempFolder()
  await putResource(other, 'agents/default/assistant.yaml', 'Agent', { policyRef: 'p', tools: [{ name: 'notes' }] })
  await putResource(other, 'mcpservers/default/notes.yaml', 'MCPServer', { url: 'http://127.0.0.1:9/mcp' })
  await putResource(other, 'toolpolicies/default/p.yaml', 'ToolPolicy', { rules: [{ name: 'all', action: 'allow' }] })
  assert.equal((await explain(other)).code, 3)
})

test('plat run governs a program by the agent of a gateway elsewhere', async () => {
  const out = join(tempFolder(), 'out')
  const script = `fetch(process.env.PLAT_GATEWAY_URL + '/mcp/notes', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{}}}',
  }).then((r) => r.text()).then((text) => {
    require('node:fs').writeFileSync(process.env.OUT, JSON.stringify([text, Object.keys(process.env)]))
    process.exit(7)
  })`
  process.env.OUT = out
  const { code, text } = await printed((to) =>
    run({ agent: 'assistant', command: [process.execPath, '-e', script], isolate: 'off' }, to),
  )
  delete process.env.OUT
  assert.equal(code, 7)
  assert.match(text, /not isolated: the program runs as you and can read plat's keys, tokens and logins/)
  const [answer, names] = JSON.parse(await readFile(out, 'utf8'))
  assert.match(answer, /nothing is read here/)
  for (const name of ['PLAT_ADMIN_TOKEN', 'PLAT_BROKER_TOKEN']) assert.ok(!names.includes(name), name)
})
