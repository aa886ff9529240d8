import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { verifyLedger } from '@plat/ledger'
import { freePort, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The quickstart in a separate folder and on free ports, started as in the README. */
class Quickstart {
  readonly dir: string
  readonly ports: readonly number[]
  npm: ChildProcess | null = null
  #ended: Promise<unknown> = Promise.resolve()
  screen = ''

  constructor(dir: string, ports: readonly number[]) {
    this.dir = dir
    this.ports = ports
  }

  static async make(t: TestContext): Promise<Quickstart> {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'plat-'))
    for (const part of ['resources', 'gateway.json', 'prices.json']) {
      await cp(path.join(root, 'examples/quickstart', part), path.join(dir, part), { recursive: true })
    }
    const ports = await Promise.all([freePort(), freePort(), freePort(), freePort()])
    const server = path.join(dir, 'resources/mcpservers/default/notes.yaml')
    await writeFile(server, (await readFile(server, 'utf8')).replace(':8091/', `:${ports[2]}/`))
    const agent = path.join(dir, 'resources/agents/default/assistant.yaml')
    await writeFile(agent, (await readFile(agent, 'utf8')).replace(':8092/', `:${ports[3]}/`))
    const quickstart = new Quickstart(dir, ports)
    t.after(async () => {
      quickstart.npm?.kill('SIGTERM')
      await quickstart.gone()
      await rm(dir, { recursive: true, force: true })
    })
    return quickstart
  }

  async start(): Promise<void> {
    const [gateway, identity, notes, model] = this.ports
    const flags = ['-dir', this.dir, '-listen', `127.0.0.1:${gateway}`, '-identity-listen', `127.0.0.1:${identity}`]
    const npm = spawn('npm', ['start', '--', ...flags, '-notes-port', String(notes), '-model-port', String(model)], {
      cwd: root,
    })
    this.npm = npm
    this.#ended = once(npm, 'close')
    this.screen = ''
    const collect = (chunk: Buffer) => {
      this.screen += chunk
    }
    npm.stdout.on('data', collect)
    npm.stderr.on('data', collect)
    await until(
      () => this.screen.includes('Stop with Ctrl-C'),
      () => this.screen,
    )
  }

  /** Nothing that npm started runs any more, for each of them holds its output, and all ports are free again. */
  async gone(): Promise<void> {
    await this.#ended
    for (const port of this.ports)
      await until(
        async () => !(await answers(port)),
        () => `port ${port} is still served`,
      )
  }

  run(...args: string[]): Promise<{ readonly code: number | null; readonly text: string }> {
    const child = spawn('npm', ['run', '--silent', ...args], { cwd: root })
    let text = ''
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk
    })
    child.stderr.on('data', (chunk: Buffer) => {
      text += chunk
    })
    return new Promise((resolve) => child.once('close', (code) => resolve({ code, text })))
  }

  file(name: string): Promise<string> {
    return readFile(path.join(this.dir, '.plat', name), 'utf8')
  }
}

async function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/healthz`).then(
    () => true,
    () => false,
  )
}

test('the demo works against npm start as the README says, and its ledger verifies', async (t) => {
  const quickstart = await Quickstart.make(t)
  await quickstart.start()
  assert.match(
    quickstart.screen,
    /agents +default\/assistant\n +MCP servers +default\/notes\n +policies +default\/assistant/,
  )
  const { code, text } = await quickstart.run('demo', '--', '-dir', quickstart.dir)
  assert.equal(code, 0, text)
  assert.match(text, /calls its model +-> Hello! I am a scripted model/)
  assert.match(text, /lists its tools +-> list_notes, read_note, add_note, delete_note/)
  assert.match(text, /reads it back +-> Buy milk\./)
  assert.match(text, /tries to delete it +-> denied: /)
  assert.match(text, /you approve +-> delete_note \{"name":"draft"\}/)
  assert.match(text, /tries to delete that +-> Deleted "draft"\./)
  assert.match(text, /default\/assistant\/run-\w+ +default\.assistant +1 .* USD +0\.000000 USD/)
  assert.match(text, /valid: \d+ records/)
  assert.equal((await stat(path.join(quickstart.dir, '.plat/env'))).mode & 0o777, 0o600)
})

/** A program that knows nothing but OpenAI's two variables. */
const ASKS_THE_MODEL = `
const response = await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {
  method: 'POST',
  headers: { 'content-type': 'application/json', authorization: 'Bearer ' + process.env.OPENAI_API_KEY },
  body: JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'hello' }], stream: true }),
})
console.log(response.status, await response.text())
`

test('a program under plat run reaches the model of its agent, and the ledger counts what it used', async (t) => {
  const quickstart = await Quickstart.make(t)
  await quickstart.start()
  const { code, text } = await plat(
    ...['run', 'assistant', '-dir', quickstart.dir, '--', process.execPath, '--input-type=module'],
    ...['-e', ASKS_THE_MODEL],
  )
  assert.equal(code, 0, text)
  assert.match(text, /^200 data: /m)
  assert.match(text, /scripted-1.*Hello!/)
  assert.ok(!text.includes('usage') && text.includes('[DONE]'))
  const outcomes = async () =>
    (await quickstart.file('state/audit.jsonl'))
      .split('\n')
      .filter((line) => line.includes('"kind":"outcome"') && line.includes('"op":"model.generate"'))
  // The record of a call follows its answer.
  await until(async () => (await outcomes()).length > 0, 'the record')
  const [outcome = '', ...more] = await outcomes()
  assert.deepEqual(more, [])
  assert.match(outcome, /"server":"llm\/default.assistant".*"tool":"scripted-1".*"usageSource":"reported"/)
})

test('a second start keeps keys, tokens, notes and ledger', async (t) => {
  const quickstart = await Quickstart.make(t)
  await quickstart.start()
  await quickstart.run('demo', '--', '-dir', quickstart.dir)
  const before = await Promise.all(
    ['keys/key.pem', 'env', 'notes/keep-milk.md', 'state/audit.jsonl'].map((name) => quickstart.file(name)),
  )
  quickstart.npm?.kill('SIGTERM')
  await quickstart.gone()
  await quickstart.start()
  const after = await Promise.all(
    ['keys/key.pem', 'env', 'notes/keep-milk.md', 'state/audit.jsonl'].map((name) => quickstart.file(name)),
  )
  assert.deepEqual(after.slice(0, 3), before.slice(0, 3))
  assert.ok(after[3]?.startsWith(before[3] ?? ''), 'the ledger goes on where it stopped')
  assert.equal((await verifyLedger(path.join(quickstart.dir, '.plat/state/audit.jsonl'), {})).verdict, 'valid')
})

test('killing npm with -9 leaves nothing running', async (t) => {
  const quickstart = await Quickstart.make(t)
  await quickstart.start()
  quickstart.npm?.kill('SIGKILL')
  await quickstart.gone()
})

test('a second plat up on the same folder is refused in one line, and a taken port names the flag', async (t) => {
  const quickstart = await Quickstart.make(t)
  await quickstart.start()
  const again = await plat('up', quickstart.dir, '-listen', '127.0.0.1:0', '-identity-listen', '127.0.0.1:0')
  assert.deepEqual(again.code, 1)
  assert.match(
    again.text,
    /^plat: .* is already governed by a running plat up; stop it first, or use another directory\n$/,
  )

  const other = tempFolder()
  await cp(path.join(quickstart.dir, 'resources'), path.join(other, 'resources'), { recursive: true })
  const taken = await plat(
    'up',
    other,
    '-listen',
    `127.0.0.1:${quickstart.ports[0]}`,
    '-identity-listen',
    '127.0.0.1:0',
  )
  assert.equal(taken.code, 1)
  assert.match(taken.text, /^plat: port \d+ is in use; choose another address with -listen 127\.0\.0\.1:<port>\n$/)
})

function plat(...args: string[]): Promise<{ readonly code: number | null; readonly text: string }> {
  const child = spawn(process.execPath, [path.join(root, 'apps/cli/bin/plat.mjs'), ...args])
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      text += chunk
    })
  }
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, text })))
}
