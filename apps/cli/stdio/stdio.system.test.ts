import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { dirname, join } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { unpackDebianPackage } from '@plat/testkit/processes/debian'
import { until } from '@plat/testkit/until'
import { chooseIsolation } from '../run/isolation.ts'
import { homeOf, makeHome, writePrivate } from '../shared/home.ts'
import { Sandbox } from './launch/sandbox.ts'
import { makeSocketFolder, usableSocketPath } from './launch/socket.ts'
import { specsOf } from './launch/specs.ts'
import { CHILD, childSpec, clientOf, testBridge } from './testing/bridge.ts'

const PLAT = join(import.meta.dirname, '../bin/plat.mjs')

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

before(() => {
  if ((process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, 'bwrap')))) return
  process.env.PATH = `${join(unpackDebianPackage('bubblewrap', tempFolder()), 'usr/bin')}:${process.env.PATH}`
})

/** A governed directory with one server. */
async function folderWith(stdio: object): Promise<string> {
  const dir = tempFolder()
  const resource = {
    apiVersion: 'plat.dev/v1alpha1',
    kind: 'MCPServer',
    metadata: { name: 'child', namespace: 'default' },
  }
  await mkdir(join(dir, 'resources/mcpservers/default'), { recursive: true })
  const text = JSON.stringify({ ...resource, spec: { stdio: { command: process.execPath, args: [CHILD], ...stdio } } })
  await writeFile(join(dir, 'resources/mcpservers/default/child.yaml'), text)
  return dir
}

/** Starts `plat up` and calls its server, which the kernel then knows by these pids. */
async function upWith(t: TestContext, stdio: object): Promise<{ readonly up: ChildProcess; readonly pid: number }> {
  const dir = await folderWith(stdio)
  const args = [PLAT, 'up', dir, '-listen', '127.0.0.1:0', '-identity-listen', '127.0.0.1:0']
  const up = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => void up.kill('SIGKILL'))
  let text = ''
  up.stdout?.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  await until(() => text.includes('plat is up'), 'plat up')
  const socket = usableSocketPath(homeOf(dir).stdioSocket)
  await until(() => existsSync(socket), 'the bridge, which starts beside the gateway')
  const client = clientOf(socket, { session: 's', agent: 'a' })
  assert.equal(await client.call('count'), '1')
  const [status] = JSON.parse(await statusAt(socket)).servers
  return { up, pid: status.pids[0] }
}

async function statusAt(socketPath: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, path: '/status' }, async (response) => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk)
      resolve(Buffer.concat(chunks).toString())
    })
    outgoing.on('error', reject).end()
  })
}

for (const isolation of [{ mode: 'off' }, { mode: 'on' }]) {
  test(`kill -9 of plat up leaves no server behind, even a stubborn one (isolation ${isolation.mode})`, async (t) => {
    const { up, pid } = await upWith(t, { isolation, env: [{ name: 'STUBBORN', value: '1' }] })
    assert.ok(isAlive(pid))
    up.kill('SIGKILL')
    await until(() => !isAlive(pid), 'the server to end')
  })
}

test('SIGTERM of plat up alone stops the servers', async (t) => {
  const { up, pid } = await upWith(t, { isolation: { mode: 'off' } })
  up.kill('SIGTERM')
  await once(up, 'exit')
  assert.ok(!isAlive(pid))
})

test('a server that ignores SIGTERM is killed once it is unused', async (t) => {
  const { client } = await testBridge(t, [childSpec({ env: { STUBBORN: '1' }, idleMs: 1 })])
  const pid = Number(await client().call('pid'))
  await until(() => !isAlive(pid), 'the stubborn process to be killed')
})

test('a session can run only so many processes, and unused ones make room', async (t) => {
  const { client, bridge } = await testBridge(t, [childSpec()])
  const one = client()
  const sessions: string[] = []
  for (let count = 0; count < 17; count++) sessions.push(await one.open())
  assert.equal(bridge.status().servers[0]?.pids.length, 16)
  assert.equal(await one.call('handshakes', sessions[0]), '1 1', 'the first session goes on with a new process')
})

test('a session that uses all of its processes is refused another, and others are served', async (t) => {
  const { client } = await testBridge(t, [childSpec()])
  const one = client()
  const abort = new AbortController()
  const busy: Promise<unknown>[] = []
  for (let count = 0; count < 16; count++) {
    const session = await one.open()
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'hang' } }
    busy.push(one.send(message, { session, signal: abort.signal }).catch(() => {}))
    await until(async () => (await one.call('cancelled', session)) === 'true', 'the call')
  }
  assert.match(await one.call('count'), /^503 16 processes of servers run, 16 of this session, and no more are allowed/)
  assert.equal(await client('other').call('count'), '1')
  abort.abort()
  await Promise.all(busy)
})

/** Runs shell commands as a server with these rules would run. Returns what they print. */
async function sandboxed(isolation: object, script: (dir: string) => string): Promise<string> {
  const dir = await folderWith({})
  const home = homeOf(dir)
  await makeHome(home)
  await writePrivate(home.env, 'PLAT_ADMIN_TOKEN=admin\n')
  await writePrivate(home.gatewayConfig, '{}')
  await writeFile(join(dir, 'data.txt'), 'data\n')
  await mkdir(join(dir, 'open'))
  const metadata = { name: 'x', namespace: 'default', labels: {}, annotations: {} }
  const stdio = { command: 'sh', args: ['-c', script(dir)], isolation }
  const object = JSON.parse(
    JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind: 'MCPServer', metadata, spec: { stdio } }),
  )
  const [spec] = await specsOf([object], { home, sandbox: new Sandbox(home), env: process.env })
  assert.equal(spec?.problem, null)
  const [file = '', ...args] = spec?.argv ?? []
  const child = spawn(file, args, { cwd: dir, env: spec?.env, stdio: ['ignore', 'pipe', 'pipe'] })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(child, 'close')
  return Buffer.concat(chunks).toString()
}

test('a server sees neither .plat nor other processes, and cannot change the resources', async () => {
  const printed = await sandboxed(
    { mode: 'on' },
    (dir) => `
    cat ${dir}/.plat/env; ls ${dir}/.plat; cat /proc/${process.pid}/root${dir}/.plat/env
    rm ${dir}/resources/mcpservers/default/child.yaml && echo removed
    mv ${dir}/resources ${dir}/moved && echo moved
    echo more >>${dir}/data.txt && cat ${dir}/data.txt`,
  )
  assert.ok(
    !printed.includes('PLAT_ADMIN_TOKEN') && !printed.includes('removed\n') && !printed.includes('moved\n'),
    printed,
  )
  assert.match(printed, /data\nmore/)
})

test('rules for network, writing and hidden paths are enforced', async () => {
  const printed = await sandboxed(
    { network: false, writable: ['open'], hidden: ['data.txt'] },
    (dir) => `
    cat ${dir}/data.txt; echo x >${dir}/new && echo wrote-outside
    echo x >${dir}/open/new && echo wrote-inside; touch /tmp/scratch && echo wrote-scratch
    cat ${dir}/.plat/env; cat /proc/net/dev | grep -c :`,
  )
  assert.ok(!printed.includes('data\n') && !printed.includes('wrote-outside\n') && !printed.includes('ADMIN'), printed)
  assert.match(printed, /wrote-inside\n[\s\S]*wrote-scratch\n[\s\S]*\n1\n$/, 'the loopback device alone')
})

test('a program of plat run cannot reach the bridge, wherever its socket is', async () => {
  const dir = join(tempFolder(), 'a'.repeat(90))
  const home = homeOf(dir)
  await makeHome(home)
  await writePrivate(home.gatewayConfig, '{}')
  const folder = join(home.runs, 'run-a')
  await mkdir(folder)
  const socket = usableSocketPath(home.stdioSocket)
  assert.notEqual(socket, home.stdioSocket)
  makeSocketFolder(socket)
  await writeFile(socket, '')
  const command = chooseIsolation('on', home, folder).wrap(['true'])
  assert.ok(command.join(' ').includes(`--tmpfs ${dirname(socket)} `))
  await rm(dirname(socket), { recursive: true })
})

test('rules that cannot be enforced keep the server from being started', async () => {
  const home = homeOf(await folderWith({}))
  const path = process.env.PATH
  process.env.PATH = tempFolder()
  const sandbox = new Sandbox(home)
  process.env.PATH = path
  const why = 'bubblewrap (bwrap) is not installed; install it, or remove the rules and use mode: off'
  assert.equal(sandbox.wrap({ network: false }, home.dir).problem, `stdio.isolation: ${why}`)
  assert.equal(
    sandbox.wrap({ mode: 'off', hidden: ['x'] }, home.dir).problem,
    'stdio.isolation: rules need a mode other than off',
  )
  assert.deepEqual(sandbox.wrap({}, home.dir), { prefix: [], problem: null })
})
