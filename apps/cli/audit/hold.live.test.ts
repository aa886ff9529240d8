import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { printed, putResource } from '../testing/commands.ts'
import { startUp, type Up } from '../up/up.ts'
import { auditHold, auditHolds, auditRelease } from './hold.ts'

const dir = tempFolder()
const ledger = join(dir, '.plat', 'state', 'audit.jsonl')
let up: Up | null = null

before(async () => {
  await putResource(dir, 'agents/default/assistant.yaml', 'Agent', {
    ...{ image: 'example.com/a:1', tier: 'tier-0', policyRef: 'all', tools: [] },
  })
  await putResource(dir, 'toolpolicies/default/all.yaml', 'ToolPolicy', { rules: [{ name: 'a', action: 'allow' }] })
  up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
})
after(async () => await up?.stop())

async function listed(source: object): Promise<{ id: string; target: string; by: string; reason: string }[]> {
  return JSON.parse((await printed((output) => auditHolds({ ...source, output: 'json' }, output))).text)
}

async function recordsOf(action: string): Promise<string[]> {
  const lines = readFileSync(ledger, 'utf8').trim().split('\n')
  return lines
    .map((line) => JSON.parse(line).rec)
    .filter((rec) => rec.action === action)
    .map(({ target }) => target)
}

test('holds are made, listed and released by the gateway, or on the ledger of a stopped one, and recorded', async () => {
  const hold = (source: object, target: string) =>
    printed((output) => auditHold({ ...source, target, reason: 'case 7', output: 'table' }, output))
  assert.match(
    (await hold({ dir }, 'default/assistant/run-1')).text,
    /^held default.*\nrelease it with: plat audit release [0-9a-f-]{36}$/,
  )
  await hold({ dir }, '2026-03-01..2026-03-31')
  assert.deepEqual(
    (await listed({ dir })).map(({ target, reason }) => [target, reason]),
    [
      ['2026-03-01..2026-03-31T23:59:59.999999Z', 'case 7'],
      ['default/assistant/run-1', 'case 7'],
    ],
  )
  for (const wrong of [
    'all',
    '5..2',
    '2026-13-01..2026-14-01',
    'a/b/c/d',
    '../..',
    '',
    'agent:a/b/c',
    'session:a/b',
    'agent:',
    'user:a',
    'agent:agent:a',
  ]) {
    await assert.rejects(hold({ dir }, wrong), /cannot be held: write/)
  }
  await assert.rejects(hold({ ledger }, 'default/assistant'), /leave out -ledger/)
  const [newest] = await listed({ dir })
  await printed((output) => auditRelease({ dir, id: newest?.id ?? '' }, output))
  await assert.rejects(
    printed((output) => auditRelease({ dir, id: newest?.id ?? '' }, output)),
    /no legal hold with this id/,
  )
  await up?.stop()
  up = null
  await hold({ ledger }, '10..20')
  const [range, session] = await listed({ ledger })
  assert.deepEqual([range?.target, session?.target], ['10..20', 'default/assistant/run-1'])
  assert.match(range?.by ?? '', /^local:/)
  await printed((output) => auditRelease({ ledger, id: session?.id ?? '' }, output))
  await assert.rejects(
    printed((output) => auditRelease({ ledger, id: 'x' }, output)),
    /no legal hold with this id/,
  )
  assert.deepEqual(await recordsOf('hold.made'), [
    'default/assistant/run-1',
    '2026-03-01..2026-03-31T23:59:59.999999Z',
    '10..20',
  ])
  assert.equal((await recordsOf('hold.released')).length, 2)
  await assert.rejects(hold({ ledger: join(dir, 'none.jsonl') }, '1..2'), /none.jsonl does not exist/)
  writeFileSync(`${ledger}.legal-holds.json`, '{"v":1,"holds":[{}]}')
  await assert.rejects(listed({ ledger }), /is malformed: restore it from a copy; nothing leaves/)
})
