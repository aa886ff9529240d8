import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startUp } from '@plat/cli'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { startModel } from '../../examples/quickstart/model/server.ts'
import { startNotes } from '../../examples/quickstart/notes/server.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

let dir = ''
const closers: (() => unknown)[] = []

/** The quickstart on free ports. */
before(async () => {
  dir = tempFolder()
  const notes = await startNotes({ port: 0, dir: path.join(dir, '.plat') })
  closers.push(() => notes.close())
  const model = await startModel({ port: 0 })
  closers.push(() => model.close())
  const quickstart = path.join(root, 'examples/quickstart')
  for (const part of ['resources', 'gateway.json', 'prices.json'])
    await cp(path.join(quickstart, part), path.join(dir, part), { recursive: true })
  await rewritten('resources/mcpservers/default/notes.yaml', /http:\S+8091\S+/, notes.url)
  await rewritten('resources/agents/default/assistant.yaml', /http:\S+8092\S+/, model.url)
  const plat = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  closers.push(() => plat.stop())
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

async function rewritten(file: string, old: RegExp, now: string): Promise<void> {
  const place = path.join(dir, file)
  const text = await readFile(place, 'utf8')
  assert.match(text, old)
  await writeFile(place, text.replace(old, now))
}

/** A program under `plat run`; its screen grows while it runs. */
function underPlatRun(...command: string[]): { readonly child: ChildProcess; readonly screen: () => string } {
  const plat = path.join(root, 'apps/cli/bin/plat.mjs')
  const child = spawn(process.execPath, [plat, 'run', 'assistant', '-dir', dir, '--', process.execPath, ...command])
  let screen = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      screen += chunk
    })
  // Without the line in which plat run says whether the program is isolated.
  return { child, screen: () => screen.replace(/^plat run: .*\n/m, '') }
}

test('the example in the README of the SDK works under plat run', async () => {
  const text = await readFile(path.join(root, 'sdk/typescript/README.md'), 'utf8')
  const [, code = ''] = /```js\n(.*?)```/s.exec(text) ?? []
  const agent = path.join(tempFolder(), 'agent.mjs')
  await writeFile(agent, code)
  await mkdir(path.join(path.dirname(agent), 'node_modules/@plat'), { recursive: true })
  const link = (from: string, name: string) =>
    symlink(path.join(root, from), path.join(path.dirname(agent), 'node_modules', name))
  await link('sdk/typescript', '@plat/sdk')
  for (const name of ['@modelcontextprotocol', 'openai']) await link(`node_modules/${name}`, name)
  const { child, screen } = underPlatRun(agent)
  await once(child, 'close')
  assert.match(
    screen(),
    /^tools: list_notes, read_note, add_note, delete_note\nmodel: Hello! .*\ndenied: policy_denied by rule keep\n$/,
  )
  assert.equal(child.exitCode, 0)
})

test('the example agent waits for a person, goes on where it is refused, and ends well', async () => {
  const { child, screen } = underPlatRun(path.join(root, 'examples/sdk/agent.ts'))
  const ended = once(child, 'close')
  const waits = /deletes draft: waits for approval (\S+)/
  await until(() => waits.test(screen()) || child.exitCode !== null, screen)
  const [, id = ''] = waits.exec(screen()) ?? []
  const env = new Map(
    (await readFile(path.join(dir, '.plat/env'), 'utf8')).split('\n').map((line) => {
      const [name = '', ...value] = line.split('=')
      return [name, value.join('=')]
    }),
  )
  const approved = await fetch(`${env.get('PLAT_GATEWAY_URL')}/v1/approvals/${id}/approve`, {
    method: 'POST',
    headers: { authorization: `Bearer ${env.get('PLAT_ADMIN_TOKEN')}`, 'content-type': 'application/json' },
    body: '{"reason": "not needed"}',
  })
  assert.equal(approved.status, 200, await approved.text())
  await ended
  assert.match(screen(), /^the model says: Hello! /)
  assert.match(screen(), /\ndeletes keep-draft: refused \(policy_denied\): rule keep\n/)
  assert.match(screen(), /\ndeletes draft: done\n/)
  assert.match(screen(), /\nno calendar: the session has no scope tools:calendar\n$/)
  assert.equal(child.exitCode, 0)
})
