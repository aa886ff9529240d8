import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect } from 'node:tls'
import { systemClock, systemIds } from '@plat/core'
import { createSelfSigned } from '@plat/keys'
import { silentLog } from '@plat/process'
import { STDIO_FILES, STDIO_SECRET_PREFIX } from '@plat/resources/stdio-file'
import { tempFolder } from '@plat/testkit/local'
import { startBridge } from '../bridge.ts'
import { CHILD } from '../testing/bridge.ts'
import { readPodConfig } from './config.ts'

const TOKEN = 'a-token-of-the-gateway'
const HOST = 'plat-stdio-child.default.svc'
const day = 24 * 60 * 60 * 1000
const made = createSelfSigned({
  name: 'bridge',
  hosts: [HOST],
  notBefore: Date.now() - day,
  notAfter: Date.now() + day,
  serial: Buffer.from('01', 'hex'),
  seed: Buffer.alloc(32, 1),
})

const FILE = {
  version: 1,
  key: 'default/child',
  argv: [process.execPath, CHILD],
  env: { MODE: 'strict' },
  secretEnv: ['KEY'],
  perSession: true,
  idleSeconds: 60,
  tokenDigest: createHash('sha256').update(TOKEN).digest('base64url'),
}

/** A folder as the operator renders it. */
function folderWith(changed: object = {}): string {
  const folder = join(tempFolder(), 'config')
  mkdirSync(folder)
  writeFileSync(join(folder, STDIO_FILES.server), JSON.stringify({ ...FILE, ...changed }))
  writeFileSync(join(folder, STDIO_FILES.certificate), made.certificate)
  writeFileSync(join(folder, STDIO_FILES.key), made.privateKey)
  return folder
}

async function setUp(t: TestContext, changed: object = {}, env: NodeJS.ProcessEnv = {}) {
  const { server, access } = await readPodConfig(folderWith(changed), { PATH: process.env.PATH, ...env })
  const listener = { host: '127.0.0.1', port: 0, access }
  const bridge = await startBridge({
    listener,
    clock: systemClock,
    ids: systemIds(systemClock),
    log: silentLog,
    report() {},
  })
  t.after(() => bridge.stop())
  bridge.serve([server])
  const send = (
    headers: Readonly<Record<string, string>>,
    { path = '/default/child', method = 'POST', body = '' } = {},
  ) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const options = { host: '127.0.0.1', port: bridge.port, servername: HOST, ca: made.certificate, agent: false }
      const outgoing = request({ ...options, path, method, headers }, async (response) => {
        let text = ''
        for await (const chunk of response) text += chunk
        resolve({ status: response.statusCode ?? 0, text })
      })
      outgoing.on('error', reject).end(body)
    })
  const call = (name: string, args: object = {}, session = 's') =>
    send(
      {
        authorization: `Bearer ${TOKEN}`,
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'plat-stdio-agent': 'a',
        'plat-stdio-session': session,
      },
      { body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }) },
    )
  return { bridge, send, call }
}

test('a bridge on a port answers only the token of the gateway, and starts no process for others', async (t) => {
  // Shows D2.server.stdio.cluster.
  const { bridge, send, call } = await setUp(t)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'count' } })
  const digest = createHash('sha256').update(TOKEN).digest('base64url')
  const wrong = [
    {},
    { authorization: '' },
    { authorization: 'Bearer' },
    { authorization: 'Bearer other' },
    { authorization: `Bearer ${digest}` },
    { authorization: `Basic ${TOKEN}` },
    { authorization: `Bearer ${TOKEN}x` },
    { authorization: `Bearer ${'x'.repeat(4096)}` },
  ]
  for (const headers of wrong)
    for (const path of ['/default/child', '/status', '/other'])
      assert.equal((await send(headers, { path, body })).status, 401, JSON.stringify([headers, path]))
  assert.deepEqual(bridge.status().servers[0]?.pids, [])
  assert.equal((await send({}, { path: '/healthz', method: 'GET' })).status, 200)
  assert.match((await call('count')).text, /"text":"1"/)
  assert.match((await call('count')).text, /"text":"2"/)
  assert.match((await call('count', {}, 'other')).text, /"text":"1"/, 'each session has a process')
})

test('only TLS 1.3 with the certificate of the server is spoken', async (t) => {
  const { bridge } = await setUp(t)
  const options = { host: '127.0.0.1', port: bridge.port, servername: HOST, ca: made.certificate }
  const failure = (more: object) =>
    new Promise<string>((resolve) => {
      const socket = connect({ ...options, ...more }, () => resolve(`connected with ${socket.getProtocol()}`))
      socket.on('error', (error) => resolve(String(Object(error).code ?? error)))
    })
  assert.equal(await failure({}), 'connected with TLSv1.3')
  assert.match(await failure({ maxVersion: 'TLSv1.2' }), /ALERT|ERR_SSL/)
  assert.match(await failure({ servername: 'plat-stdio-other.default.svc' }), /ALTNAME/)
  const other = createSelfSigned({
    name: 'bridge',
    hosts: [HOST],
    notBefore: 0,
    notAfter: Date.now() + day,
    serial: Buffer.from('02', 'hex'),
  })
  assert.match(await failure({ ca: other.certificate }), /DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_VERIFY|SIGNATURE/)
})

test('the program has the variables of its image and of the resource, and none of the bridge', async (t) => {
  // Shows D2.server.stdio.env.
  const secret = { [`${STDIO_SECRET_PREFIX}KEY`]: 'hunter2\n' }
  const { call } = await setUp(t, {}, { ...secret, FROM_IMAGE: 'yes', NODE_OPTIONS: '', LD_PRELOAD: '' })
  const text = async (args: object) => JSON.parse(JSON.parse((await call('env', args)).text).result.content[0].text)
  assert.deepEqual(await text({}), ['FROM_IMAGE', 'KEY', 'MODE', 'PATH'])
  assert.equal(await text({ name: 'KEY' }), 'hunter2')
})

test('a folder that is not as it must be stops the bridge with the file and the field', async () => {
  const env = {}
  await assert.rejects(readPodConfig('/nowhere', env), /\/nowhere\/server\.json/)
  for (const [changed, field] of [
    [{ tokenDigest: '' }, 'tokenDigest'],
    [{ argv: [] }, 'argv'],
    [{ cwd: 'relative' }, 'cwd'],
    [{ more: 1 }, 'more'],
  ] as const)
    await assert.rejects(readPodConfig(folderWith(changed), env), new RegExp(`server\\.json: .*${field}`))
  const { server } = await readPodConfig(folderWith({ cwd: '/not/there' }), env)
  assert.equal(server.problem, 'stdio.cwd: /not/there does not exist in the image')
})

test('a bridge without a token of the gateway serves no client', async (t) => {
  const { send } = await setUp(t, { tokenDigest: 'A'.repeat(43) })
  assert.equal((await send({ authorization: `Bearer ${TOKEN}` })).status, 401)
})
