import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { unpackDebianPackage } from '@plat/testkit/processes/debian'
import { until } from '@plat/testkit/until'

const PROGRAM = join(import.meta.dirname, 'sandbox.ts')

before(() => {
  if ((process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, 'bwrap')))) return
  process.env.PATH = `${join(unpackDebianPackage('bubblewrap', tempFolder()), 'usr/bin')}:${process.env.PATH}`
})

/** Starts the program and returns the blocks of gateway.json that it prints. */
async function startDaemon(t: TestContext, dir: string) {
  const child = spawn(process.execPath, [PROGRAM, '--dir', dir, '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => ended(child))
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  await until(() => text.endsWith('}\n') || child.exitCode !== null, 'the printed blocks')
  assert.equal(child.exitCode, null, 'the daemon runs')
  return { child, blocks: JSON.parse(text) }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

test('the program runs code for a gateway that was started with the blocks it prints, and continues after a restart', async (t) => {
  const dir = join(tempFolder(), 'sandbox')
  const first = await startDaemon(t, dir)
  for (const name of ['token', 'exec.key']) assert.equal(statSync(join(dir, name)).mode & 0o077, 0, name)
  const runOn = async ({ blocks }: Awaited<ReturnType<typeof startDaemon>>, code: string) => {
    const config = { ...blocks, sbxd: { ...blocks.sbxd, anchorIntervalSeconds: 1 } }
    const gateway = await startGatewayProcess({ servers: { 'plat-exec': 'http://127.0.0.1:9/mcp' }, config })
    t.after(() => gateway.close())
    const response = await fetch(`${gateway.url}/v1/sessions/s1/exec`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ code, timeoutSeconds: 20 }),
    })
    const body = JSON.parse(await response.text())
    assert.equal(response.status, 200, JSON.stringify(body))
    const isAnchored = async () => (await gateway.ledger()).some((line) => line.includes('"source":"sbxd"'))
    await until(isAnchored, 'the anchored ledger')
    return body
  }
  assert.deepEqual(await runOn(first, 'echo $((6 * 7))'), { stdout: '42\n', stderr: '', exitCode: 0 })
  const ledger = () => wholeLines(join(dir, 'ledger.jsonl'))
  await until(() => ledger().some((line) => line.includes('"event":"decisions"')), 'the mirrored decision')
  await ended(first.child)
  const count = ledger().length
  const second = await startDaemon(t, dir)
  assert.deepEqual(second.blocks.exec.keyFile, first.blocks.exec.keyFile)
  const { stdout, stderr } = await runOn(second, `cat ${join(dir, 'token')}; ls ${dir}; echo done`)
  assert.equal(stdout, 'done\n')
  assert.match(stderr, /No such file/)
  // The second gateway has verified the chain from its beginning.
  assert.ok(ledger().length > count)
})

test('without bubblewrap the program ends with one line', async () => {
  const dir = tempFolder()
  mkdirSync(join(dir, 'bin'))
  const child = spawn(process.execPath, [PROGRAM, '--dir', dir, '--port', '0'], {
    env: { ...process.env, PATH: join(dir, 'bin') },
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  let text = ''
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  const [status] = await once(child, 'close')
  assert.deepEqual([status, text], [1, 'code cannot be isolated: bubblewrap (bwrap) is not installed\n'])
})
