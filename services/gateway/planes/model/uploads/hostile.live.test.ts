import assert from 'node:assert/strict'
import { readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { startMediaServer } from '@plat/testkit/media-server'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { started, TOKEN } from '../../../testing/started.ts'

const MIB = 1024 * 1024

/** A gateway with a route for images, its spool in `dir`, and raw sockets to it. */
async function setUp(t: TestContext, rules: readonly object[] = [{ name: 'all', action: 'allow' }]) {
  const provider = await startMediaServer()
  t.after(() => provider.close())
  const dir = tempFolder()
  const policyFile = join(tempFolder(), 'policies.json')
  writeFileSync(policyFile, policiesFile([testPolicy({ rules })]))
  const { gateway, issuer } = await started(t, {
    ...{ policyFile, models: { r: { upstream: provider.url } }, modelPolicy: 'policy' },
    modelUploads: { maxBytes: 4 * MIB, totalBytes: 64 * MIB, dir },
    adminAuth: { devTokenApprovers: true },
  })
  const authorization = `Bearer ${issuer.token({ scope: 'models:r models.images:r models.audio:r' })}`
  const { hostname, port } = new URL(gateway.url)
  /** Sends the pieces of a chunked form over a socket. Returns what came back until the connection closed, at the latest when `isEnough`. */
  const raw = async (pieces: Iterable<string | Buffer>, isEnough: (text: string) => boolean, type = 'boundary=b') => {
    const socket = connect(Number(port), hostname)
    let text = ''
    const over = Promise.withResolvers<void>()
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      if (isEnough(text)) over.resolve()
    })
    socket.on('error', () => over.resolve()).on('close', () => over.resolve())
    socket.write(
      `POST /llm/r/v1/images/edits HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: ${authorization}\r\ncontent-type: multipart/form-data; ${type}\r\ntransfer-encoding: chunked\r\n\r\n`,
    )
    for (const piece of pieces) {
      if (socket.destroyed) break
      socket.write(`${piece.length.toString(16)}\r\n`)
      socket.write(piece)
      if (!socket.write('\r\n'))
        await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), over.promise])
    }
    return { socket, over: over.promise, text: () => text }
  }
  const used = async () =>
    /^plat_gateway_pool_used\{pool="upload_bytes"\} (\d+)$/m.exec(
      await (await fetch(`${gateway.url}/metrics`)).text(),
    )?.[1]
  return { gateway, provider, authorization, raw, used, dir }
}

/** Descriptors of spooled files that this process has open. */
function openFiles(): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes('plat-upload-')
    } catch {
      return false
    }
  }).length
}

const part = (head: string, text = 'x') => `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}\r\n`
const fields = part('name="model"', 'i') + part('name="prompt"')
const fileHead = '--b\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'

test('uploads that are cut, malformed or refused leave neither descriptors nor a share', async (t) => {
  const { raw, used, provider } = await setUp(t)
  for (let count = 0; count < 20; count++) {
    const { socket } = await raw([fields, fileHead, Buffer.alloc(100_000)], () => false)
    socket.destroy()
    const broken = await raw([fields, fileHead, Buffer.alloc(100_000), '\r\n--bxx'], (text) =>
      text.includes('invalid_request'),
    )
    await broken.over
    broken.socket.destroy()
  }
  await until(
    async () => (await used()) === '0' && openFiles() === 0,
    () => `no open upload: ${openFiles()}`,
  )
  assert.equal(provider.calls.length, 0)
})

test('after its refusal an endless body is not read for ever', async (t) => {
  const { raw, used } = await setUp(t)
  let count = 0
  function* endless() {
    yield `${fields}${fileHead}`
    const block = Buffer.alloc(64 * 1024)
    for (let sent = 0; sent < 512 * MIB; sent += block.length) {
      count += block.length
      yield block
    }
  }
  const { socket, text } = await raw(endless(), () => false)
  assert.match(text(), /^HTTP\/1\.1 413 /)
  // The upload may have 4 MiB; the rest is in buffers of the connection.
  assert.ok(count < 128 * MIB, `${count} bytes were read`)
  socket.destroy()
  await until(async () => (await used()) === '0' && openFiles() === 0, 'no open upload')
})

test('a spool that cannot be written refuses the upload, and nothing else', async (t) => {
  const { raw, dir, gateway, authorization } = await setUp(t)
  rmSync(dir, { recursive: true })
  const { over, text, socket } = await raw([fields, fileHead, 'x\r\n--b--', ''], (all) => all.includes('\r\n\r\n{'))
  await over
  assert.match(text(), /^HTTP\/1\.1 503 .*"code":"state_unavailable"/s)
  socket.destroy()
  const response = await fetch(`${gateway.url}/llm/r/v1/images/generations`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'i', prompt: 'x' }),
  })
  assert.equal(response.status, 200)
})

test('an upload that waits for an approval is sent with its bytes afterwards', async (t) => {
  const { gateway, provider, authorization, used } = await setUp(t, [{ name: 'ask', action: 'require_approval' }])
  const body = `${fields}${fileHead}${'y'.repeat(500_000)}\r\n--b--`
  const waiting = fetch(`${gateway.url}/llm/r/v1/images/edits`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'multipart/form-data; boundary=b' },
    body,
  })
  const admin = async (method: string, path: string) =>
    JSON.parse(
      await (
        await fetch(`${gateway.adminUrl}/v1/${path}`, { method, headers: { authorization: `Bearer ${TOKEN}` } })
      ).text(),
    )
  const pending = async () => (await admin('GET', 'approvals?state=pending')).items
  await until(async () => (await pending()).length === 1, 'the approval')
  assert.equal(openFiles(), 1)
  await admin('POST', `approvals/${(await pending())[0].id}/approve`)
  assert.equal((await waiting).status, 200)
  assert.equal(provider.calls[0]?.files[0]?.bytes.length, 500_000)
  await until(async () => (await used()) === '0' && openFiles() === 0, 'no open upload')
})
