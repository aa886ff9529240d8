import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { readAgent } from './agent.ts'

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
