import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { createFileStore } from '@plat/resources'
import { startRender } from './start.ts'

const head = (kind: string) =>
  `apiVersion: plat.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: a, namespace: default}\nspec:\n`
const agent = `${head('Agent')}  image: i\n  tier: t\n  policyRef: a\n`
const policy = (action: string) => `${head('ToolPolicy')}  rules: [{name: r, action: ${action}}]\n`

test('resources are rendered at start and again on change, with private modes, and nothing is written twice', async () => {
  const root = await mkdtemp(join(tmpdir(), 'plat-'))
  const outDir = join(root, 'rendered')
  const clock = new TestClock()
  const put = async (path: string, text: string) => {
    const file = join(root, 'resources', path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
  }
  const store = createFileStore({ dir: join(root, 'resources'), clock, log: silentLog })
  const policies = async () => JSON.parse(await readFile(join(outDir, 'policies.json'), 'utf8'))
  /** Lets the store look and the renderer write: both wait for the disk, not for the clock. */
  const until = async (holds: () => Promise<boolean>) => {
    for (let round = 0; round < 500 && !(await holds()); round++) await clock.advance(1000)
    assert.ok(await holds())
  }
  await put('agents/default/a.yaml', agent)
  await put('toolpolicies/default/a.yaml', policy('allow'))
  const render = await startRender({ store, outDir, secretsDir: root, log: silentLog, clock })
  try {
    assert.deepEqual((await policies()).policies[0].agents, ['a'])
    assert.deepEqual(render.refused(), [])
    assert.equal((await stat(outDir)).mode & 0o777, 0o700)
    const { mode, ino } = await stat(join(outDir, 'upstreams.json'))
    assert.equal(mode & 0o777, 0o600)

    await put('toolpolicies/default/a.yaml', policy('require_approval, quorum: {minApprovers: 2}'))
    await until(async () => (await policies()).generation === 2)
    assert.equal((await policies()).policies[0].rules[0].name, 'refused')
    const line = 'ToolPolicy default/a rules[0].quorum: not built yet in this version'
    await until(async () => render.refused().includes(line))

    await put('toolpolicies/default/a.yaml', 'broken: [')
    await until(async () => (await policies()).policies.length === 0)
    assert.ok(render.refused().some((problem) => problem.startsWith('toolpolicies/default/a.yaml:1: ')))
    await until(async () =>
      render.refused().includes('Agent default/a policyRef: no ToolPolicy default/a: the agent is denied'),
    )
    assert.equal((await stat(join(outDir, 'upstreams.json'))).ino, ino)
  } finally {
    await render.stop()
    store.close()
    await rm(root, { recursive: true })
  }
})

test('a first rendering that fails is told, not swallowed', async () => {
  const root = await mkdtemp(join(tmpdir(), 'plat-'))
  const clock = new TestClock()
  const store = createFileStore({ dir: join(root, 'resources'), clock, log: silentLog })
  try {
    await writeFile(join(root, 'file'), '')
    await assert.rejects(
      startRender({ store, outDir: join(root, 'file', 'out'), secretsDir: root, log: silentLog, clock }),
    )
  } finally {
    store.close()
    await rm(root, { recursive: true })
  }
})
