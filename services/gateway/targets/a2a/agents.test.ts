import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDenial } from '../../call/index.ts'
import { decodeAgents } from './decode.ts'
import { createPushRule } from './push.ts'
import { buildAgents } from './registry.ts'

const LEAST = {
  endpoint: 'http://h.example',
  allowedCallers: [],
  skills: [],
  streaming: false,
  trust: 'trusted',
  version: '1',
} as const

function admits(allowedCallers: string[], caller: string): boolean | undefined {
  const [namespace = '', agent = ''] = caller.split('/')
  const file = { version: 1 as const, agents: { 'default/helper': { ...LEAST, skills: [], allowedCallers } } }
  return buildAgents(file).agent('a2a/default/helper')?.admits({ namespace, agent })
}

test('an agent admits the callers that it lists, and its own namespace if it lists none', () => {
  // Shows D2.a2a.allowedCallers, D2.a2a.allowedCallers.byName, D2.a2a.allowedCallers.byNamespace,
  // D2.a2a.allowedCallers.globs and D2.a2a.allowedCallers.emptyMeansNamespace.
  const cases: [string[], string, boolean][] = [
    [[], 'default/anybody', true],
    [[], 'team/anybody', false],
    [['planner'], 'default/planner', true],
    [['planner'], 'default/other', false],
    [['planner'], 'team/planner', false],
    [['plan*'], 'default/planner', true],
    [['*'], 'default/anybody', true],
    [['*'], 'team/anybody', false],
    [['team/planner'], 'team/planner', true],
    [['team/planner'], 'default/planner', false],
    [['team/*'], 'team/x', true],
    [['*/planner'], 'other/planner', true],
    [['te*/pl*'], 'team/planner', true],
    [['te*/pl*'], 'team/other', false],
    [['team/*'], 'default/x', false],
    [['planner', 'team/*'], 'team/x', true],
  ]
  for (const [callers, caller, expected] of cases)
    assert.equal(admits(callers, caller), expected, `${callers} ${caller}`)
})

test('a routes file is decoded strictly, and every problem is reported', () => {
  const decode = (agents: object) => decodeAgents(Buffer.from(JSON.stringify({ version: 1, agents })))
  assert.equal(decode({ 'default/helper': LEAST }).ok, true)
  const twice = {
    ...LEAST,
    skills: [
      { id: 'a', name: 'a' },
      { id: 'a', name: 'b' },
    ],
  }
  const bad = decode({ helper: LEAST, 'Default/x': LEAST, 'a/b': { ...LEAST, endpoint: 'http://%' }, 'a/c': twice })
  assert.deepEqual(bad, {
    ok: false,
    problems: [
      'agents[helper]: must read <namespace>/<agent>',
      'agents[Default/x]: must read <namespace>/<agent>',
      'agents[a/b].endpoint: not a URL',
      'agents[a/c].skills: duplicate id',
    ],
  })
  for (const wrong of [
    { ...LEAST, colour: 'red' },
    { ...LEAST, endpoint: 'ftp://x' },
    { ...LEAST, endpoint: 'http://u:p@x' },
  ])
    assert.equal(decode({ 'a/b': wrong }).ok, false)
})

test('webhooks are https URLs of listed hosts, and never an internal address', () => {
  // Shows D3.a2a.pushNotificationHosts.
  const rule = createPushRule(['hooks.example.com', '*.push.example', 'odd.example:8443', '10.*', '\\*', '[*'])
  for (const url of [
    'https://hooks.example.com/x?y',
    'https://HOOKS.example.com',
    'https://a.push.example:443/',
    'https://odd.example:8443',
  ])
    assert.equal(rule(url), null, url)
  for (const url of [
    'http://hooks.example.com/',
    'https://hooks.example.com:8443/',
    'https://odd.example/',
    'https://push.example/',
    'https://hooks.example.com.evil.example/',
    'https://user@hooks.example.com/',
    'https://10.0.0.1/',
    'https://0x0a000001/',
    'https://[::1]/',
    'ftp://hooks.example.com/',
    'hooks.example.com',
    '',
  ])
    assert.ok(isDenial(rule(url)), url)
  const none = createPushRule([])('https://hooks.example.com/')
  assert.deepEqual([none?.code, none?.data], ['forbidden', { rpc: -32003 }])
})
