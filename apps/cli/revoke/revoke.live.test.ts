import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { run } from '../run/run.ts'
import type { Output } from '../shared/output.ts'
import { status } from '../status/status.ts'
import { printed, putResource } from '../testing/commands.ts'
import { startUp, type Up } from '../up/up.ts'
import { parseTarget, revocationsLift, revocationsList, revoke } from './revoke.ts'

let up: Up
let dir = ''

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  await putResource(dir, 'mcpservers/default/notes.yaml', 'MCPServer', { url: 'http://127.0.0.1:9/mcp' })
  const agent = { image: 'example.com/a:1', tier: 'tier-0', policyRef: 'all', tools: [{ name: 'notes' }] }
  await putResource(dir, 'agents/default/assistant.yaml', 'Agent', agent)
  await putResource(dir, 'toolpolicies/default/all.yaml', 'ToolPolicy', { rules: [{ name: 'a', action: 'allow' }] })
  up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
})

after(async () => {
  await up.stop()
  await rm(dir, { recursive: true })
})

async function listed(): Promise<{ id: string; target: Record<string, string>; reason: string; expiresAt: string }[]> {
  return JSON.parse((await printed((output) => revocationsList({ dir, output: 'json' }, output))).text)
}

test('plat revoke is in force when it returns and says how to undo it; lift undoes it', async () => {
  const options = {
    dir,
    target: 'agent:assistant',
    mode: 'suspend',
    reason: 'drill',
    for: '1h',
    output: 'table',
  } as const
  const { code, text } = await printed((output) => revoke(options, output))
  assert.equal(code, 0)
  assert.match(text, /^suspended agent:assistant until 2.*Z; ended 0 live calls\nlift it with: plat revocations lift /)
  const [one] = await listed()
  assert.deepEqual(one?.target, { agent: 'default/assistant' })
  const list = (await printed((output) => revocationsList({ dir, output: 'table' }, output))).text
  assert.match(list, /agent:default\/assistant\s+suspend\s+2\S+\s+breakglass\s+drill/)
  await printed((output) => revocationsLift({ dir, id: one?.id ?? '' }, output))
  assert.match((await printed((output) => revocationsList({ dir, output: 'table' }, output))).text, /no revocations/)
})

test('revoking an undeclared name prints a warning with the agent that may have been meant', async () => {
  const warnings: string[] = []
  const output: Output = { out() {}, err: (text) => warnings.push(text) }
  const options = { dir, mode: 'revoke', for: '1h', output: 'table' } as const
  await revoke({ ...options, target: 'agent:assistent' }, output)
  assert.deepEqual(warnings, ['check the name: no agent default/assistent: did you mean default/assistant?'])
  await revoke({ ...options, target: 'agent:assistant' }, output)
  assert.equal(warnings.length, 1)
  for (const { id } of await listed()) await revocationsLift({ dir, id }, output)
})

test('an id that the gateway does not know is answered with the list that has them', async () => {
  const quiet: Output = { out() {}, err() {} }
  await assert.rejects(
    revocationsLift({ dir, id: 'nosuch' }, quiet),
    /no revocation with this id; see plat revocations list$/,
  )
})

test('a refusal of the gateway, or an invalid target, is reported in one line', async () => {
  const options = { dir, mode: 'revoke', output: 'table' } as const
  const quiet: Output = { out() {}, err() {} }
  await assert.rejects(
    revoke({ ...options, target: 'session:default/assistant' }, quiet),
    /refused: target\.session: must/,
  )
  await assert.rejects(revoke({ ...options, target: 'all', for: 'soon' }, quiet), /-for: soon is not a duration/)
  await assert.rejects(revocationsLift({ dir, id: 'unknown' }, quiet), /no revocation with this id/)
  assert.throws(() => parseTarget('sesion:a/b/c'), /did you mean session/)
  assert.throws(() => parseTarget('user:'), /no name/)
  assert.deepEqual(parseTarget('jti:a:b'), { jti: 'a:b' })
  assert.deepEqual(parseTarget('all'), { all: true })
  assert.deepEqual(parseTarget('default/assistant'), { agent: 'default/assistant' })
  assert.deepEqual(parseTarget('default/assistant/run-1'), { session: 'default/assistant/run-1' })
})

test('when plat run ends, its session is revoked beyond the end of its token', async () => {
  const command = [process.execPath, '-e', 'process.exit(process.env.PLAT_SESSION.startsWith("run-") ? 7 : 1)']
  const { code, text } = await printed((output) => run({ dir, agent: 'assistant', command, isolate: 'off' }, output))
  assert.equal(code, 7)
  assert.match(text, /^plat run: not isolated: .* \(-isolate off\)$/)
  const [one] = await listed()
  assert.match(one?.target.session ?? '', /^default\/assistant\/run-[a-z2-7]{13}$/)
  assert.ok(Date.parse(one?.expiresAt ?? '') > Date.now() + 10 * 60_000, String(one?.expiresAt))
  const list = async (all: boolean) =>
    (await printed((output) => revocationsList({ dir, output: 'table', all }, output))).text
  assert.equal(await list(false), 'not listed: 1 revocation of ended runs; -all lists them\nno revocations')
  const found = await printed((output) => status({ dir, output: 'table' }, output))
  assert.match(found.text, /^revocations +0, and 1 of ended runs$/m)
  assert.match(await list(true), /session:default\/assistant\/run-\S+ +revoke .* plat run has ended$/m)
})
