import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { callerMembers, readAgent } from './agent.ts'

/** The scopes of an agent with these fields. */
async function scopesOf(fields: string): Promise<readonly string[]> {
  const dir = tempFolder()
  const agents = join(dir, 'resources', 'agents', 'default')
  await mkdir(agents, { recursive: true })
  const head = 'apiVersion: plat.dev/v1alpha1\nkind: Agent\nmetadata: {name: a, namespace: default}\n'
  await writeFile(join(agents, 'a.yaml'), `${head}spec: {image: i, tier: tier-0, ${fields}}\n`)
  return (await readAgent(dir, 'a')).scopes
}

test('a profile brings the scope of what its sandbox needs, beside whatever is named', async () => {
  // Shows D2.agent.profile.browser.scope and D2.agent.profile.codeInterpreter.scope.
  assert.deepEqual(await scopesOf('profile: browser'), ['tools:plat-egress'])
  assert.deepEqual(await scopesOf("profile: browser, scopes: ['tools:notes']"), ['tools:notes', 'tools:plat-egress'])
  assert.deepEqual(await scopesOf('profile: codeInterpreter, tools: [{name: notes}]'), [
    'tools:notes',
    'tools:plat-exec',
  ])
  assert.deepEqual(await scopesOf('profile: default'), [])
})

test('an agent among other documents is found, with or without agent: before it, and one without a tier has tier-0', async () => {
  const dir = tempFolder()
  await mkdir(join(dir, 'resources'))
  const head = (name: string) =>
    `apiVersion: plat.dev/v1alpha1\nkind: Agent\nmetadata: {name: ${name}, namespace: default}\n`
  await writeFile(join(dir, 'resources/all.yaml'), `${head('a')}spec: {}\n---\n${head('b')}spec: {tier: tier-1}\n`)
  assert.deepEqual([(await readAgent(dir, 'a')).tier, (await readAgent(dir, 'default/b')).tier], ['tier-0', 'tier-1'])
  assert.deepEqual([(await readAgent(dir, 'agent:a')).name, (await readAgent(dir, 'agent:default/b')).name], ['a', 'b'])
  await assert.rejects(readAgent(dir, 'c'), /no agent default\/c: did you mean default\//)
})

test('a session or an agent can be named with what it belongs to, and two flags cannot name different ones', () => {
  const named = { namespace: 'shop', agent: 'assistant', session: 'run-1' }
  assert.deepEqual(callerMembers({ session: 'shop/assistant/run-1' }), named)
  assert.deepEqual(callerMembers({ session: 'session:shop/assistant/run-1', agent: 'assistant' }), named)
  assert.deepEqual(callerMembers({ session: 'run-1', agent: 'agent:shop/assistant' }), named)
  assert.deepEqual(callerMembers({ session: 'run-1' }), { namespace: undefined, agent: undefined, session: 'run-1' })
  assert.throws(
    () => callerMembers({ session: 'shop/assistant/run-1', agent: 'other' }),
    /^Error: agent: the flags name both other and assistant; give one$/,
  )
  assert.throws(
    () => callerMembers({ agent: 'shop/a', namespace: 'default' }),
    /namespace: the flags name both default/,
  )
})
