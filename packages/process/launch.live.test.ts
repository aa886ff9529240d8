import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

const PROGRAM = path.join(import.meta.dirname, 'fixtures', 'program.mjs')

/** Returns the first Node on the PATH that is too old to run TypeScript, without the folders that npm adds. */
function findOlderNode(): string | null {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    const node = path.join(folder, 'node')
    if (folder.includes('node_modules') || !existsSync(node)) continue
    const version = execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' })
    if (Number.parseInt(version, 10) < 26) return node
  }
  return null
}

interface Running {
  child: ChildProcess
  output(): string
  sees(text: string): Promise<void>
  ended: Promise<{ code: number | null; signal: string | null }>
}

function start(command: string, argv: string[], env: Record<string, string> = {}): Running {
  const { npm_lifecycle_event: _npm, ...inherited } = process.env
  const child = spawn(command, argv, { env: { ...inherited, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }))
  const sees = async (text: string) => {
    for (let tries = 0; !output.includes(text); tries++) {
      assert.ok(tries < 6000, `no "${text}" in: ${output}`)
      await sleep(10)
    }
  }
  return { child, output: () => output, sees, ended }
}

/** Returns the process that runs the program itself, from its first output line. */
function pidOf(running: Running): number {
  return JSON.parse(running.output().split('\n')[0] ?? '').pid
}

async function isGone(pid: number): Promise<boolean> {
  for (let tries = 0; tries < 3000; tries++) {
    try {
      process.kill(pid, 0)
    } catch {
      return true
    }
    await sleep(10)
  }
  process.kill(pid, 'SIGKILL')
  return false
}

const older = findOlderNode()
const nodes: readonly { readonly name: string; readonly node: string; readonly skip: false | string }[] = [
  { name: 'Node 26', node: process.execPath, skip: false },
  {
    name: 'an older Node',
    node: older ?? '',
    skip: older === null ? 'there is no older Node on the PATH' : false,
  },
]

for (const { name, node, skip } of nodes) {
  describe(`started under ${name}`, { skip }, () => {
    test('a program runs on Node 26 and its exit code is kept', async () => {
      const running = start(node, [PROGRAM, 'exit', '7'])
      assert.deepEqual(await running.ended, { code: 7, signal: null })
      const { version, argv } = JSON.parse(running.output())
      assert.match(version, /^v26\./)
      assert.deepEqual(argv, ['exit', '7'])
    })

    test('a program that waits for a timer of its clock alone is not ended', async () => {
      const { ended } = start(node, [PROGRAM, 'pause', '400'])
      assert.equal((await ended).code, 7)
    })

    test('a program that throws exits with 1 and prints the reason', async () => {
      const running = start(node, [PROGRAM, 'throw'])
      assert.equal((await running.ended).code, 1)
      assert.match(running.output(), /the program failed/)
    })

    test('SIGTERM drains, then the exit code is that of the program', async () => {
      const running = start(node, [PROGRAM, 'drain', '50'])
      await running.sees('ready')
      running.child.kill('SIGTERM')
      assert.deepEqual(await running.ended, { code: 0, signal: null })
      assert.match(running.output(), /draining\ndrained SIGTERM/)
    })

    test('SIGINT to the launcher alone drains', async () => {
      const running = start(node, [PROGRAM, 'drain', '50'])
      await running.sees('ready')
      running.child.kill('SIGINT')
      assert.deepEqual(await running.ended, { code: 0, signal: null })
      assert.match(running.output(), /draining\ndrained SIGINT/)
    })

    test('a kill -9 of the started process leaves no process behind', async () => {
      const running = start(node, [PROGRAM, 'drain', '0'])
      await running.sees('ready')
      running.child.kill('SIGKILL')
      assert.ok(await isGone(pidOf(running)))
    })

    test('a program without a signal handler ends with its launcher', async () => {
      const running = start(node, [PROGRAM, 'plain'])
      await running.sees('pid')
      running.child.kill('SIGKILL')
      assert.ok(await isGone(pidOf(running)))
    })

    test('a kill -9 of the npm above drains the program', async () => {
      const shell = start('/bin/sh', ['-c', `"${node}" "${PROGRAM}" drain 0; true`], { npm_lifecycle_event: 'start' })
      await shell.sees('ready')
      shell.child.kill('SIGKILL')
      assert.ok(await isGone(pidOf(shell)))
      await shell.sees('drained')
    })
  })
}

test('without npm a program outlives the shell that started it, like a daemon', async () => {
  const shell = start('/bin/sh', ['-c', `"${process.execPath}" "${PROGRAM}" drain 0; true`])
  await shell.sees('ready')
  shell.child.kill('SIGKILL')
  await sleep(1500)
  const pid = pidOf(shell)
  process.kill(pid, 'SIGTERM')
  assert.ok(await isGone(pid))
  await shell.sees('drained SIGTERM')
})

test('the same Ctrl-C from terminal and npm drains once; a later second signal ends at once', async () => {
  const running = start(process.execPath, [PROGRAM, 'again'])
  assert.deepEqual(await running.ended, { code: 143, signal: null })
  assert.match(running.output(), /\}\ndraining\nstill draining\n$/)
})

test('a long drain is ended by further signals', async () => {
  const running = start(process.execPath, [PROGRAM, 'drain', '600000'])
  await running.sees('ready')
  while (running.child.exitCode === null && running.child.signalCode === null) {
    running.child.kill('SIGINT')
    await sleep(50)
  }
  assert.deepEqual(await running.ended, { code: 130, signal: null })
})

test('a failed drain is reported and ends the process with 1', async () => {
  const running = start(process.execPath, [PROGRAM, 'fail', '0'])
  await running.sees('ready')
  running.child.kill('SIGTERM')
  assert.equal((await running.ended).code, 1)
  assert.match(running.output(), /shutdown failed: Error: the drain failed/)
})
