import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseResource, readManifest } from './manifest.ts'
import { readManifestAside } from './manifest-aside.ts'

const head = 'apiVersion: plat.dev/v1alpha1\nkind: ToolPolicy\nmetadata: {name: a, namespace: b}\nspec:\n'
const rules = (count: number) =>
  Array.from({ length: count }, (_, at) => `    - {name: r${at}, action: allow}\n`).join('')

test('a long text parsed on the thread gives the same result', async () => {
  const texts = [
    `${head}  rules:\n${rules(400)}`,
    `${head}  rules:\n${rules(400)}    - {name: r1, action: allow}\n`,
    `${head}${Array.from({ length: 3000 }, (_, at) => `  x${at}: 1\n`).join('')}`,
    `${head}  rules: ${'['.repeat(20_000)}`,
    '\n'.repeat(20_000),
    `${head}  rules: []\n`,
    `# ${'a'.repeat(1024 * 1024)}`,
  ]
  const read = await Promise.all(texts.map((text) => readManifestAside('ToolPolicy', text)))
  for (const [at, text] of texts.entries()) assert.deepEqual(read[at], readManifest('ToolPolicy', text), `text ${at}`)
  assert.notEqual(read[0]?.object, null)
  assert.deepEqual(parseResource('ToolPolicy', texts[0] ?? '').problems, [])
})

test('the event loop continues while a long text is parsed', async () => {
  let turns = 0
  const turning = setInterval(() => turns++, 1)
  await readManifestAside('ToolPolicy', `${head}  rules:\n${rules(20_000)}`)
  clearInterval(turning)
  assert.ok(turns > 10, `${turns} turns`)
})
