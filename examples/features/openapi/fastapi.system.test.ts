import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { pythonWith } from '@plat/testkit/processes/python'
import { until } from '@plat/testkit/until'
import { type Plat, start } from '../plat.ts'

const python = await pythonWith(path.join(import.meta.dirname, 'requirements.txt'))

/** Starts the API on a free port. */
async function startApi(command: string): Promise<AsyncDisposable & { readonly url: string }> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0
  probe.close()
  await once(probe, 'close')
  const child = spawn(command, [path.join(import.meta.dirname, 'app.py'), String(port)], { stdio: 'inherit' })
  const url = `http://127.0.0.1:${port}`
  await until(
    () =>
      fetch(`${url}/openapi.json`).then(
        ({ ok }) => ok,
        () => false,
      ),
    'the API',
  )
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill()
      await once(child, 'exit')
    },
  }
}

async function connected(plat: Plat): Promise<Client> {
  const session = await plat.session('assistant', ['tools:items'])
  const client = new Client({ name: 'test', version: '1' })
  const { url, ...options } = session.mcp('items')
  await client.connect(new StreamableHTTPClientTransport(url, options))
  return client
}

test('the operations of a FastAPI application are tools, and its document and answers agree with their schemas', {
  skip: 'missing' in python ? python.missing : false,
}, async () => {
  assert.ok('path' in python)
  await using api = await startApi(python.path)
  const openapi = {
    documentURL: `${api.url}/openapi.json`,
    allow: [{ path: '/items*' }, { operationId: 'add_item' }, { operationId: 'label' }],
  }
  const auth = { type: 'headerSecret', headerName: 'X-Api-Key', secretRef: { name: 'items', key: 'key' } }
  const resources = { 'MCPServer/items': JSON.stringify({ url: api.url, openapi, auth }) }
  await using plat = await start({ resources })
  const secret = path.join(plat.dir, '.plat/secrets/default/items')
  await mkdir(secret, { recursive: true })
  await writeFile(path.join(secret, 'key'), 'hunter2-hunter2')
  // The credential is read within a few seconds.
  let client = await connected(plat).catch(() => null)
  await until(async () => {
    client ??= await connected(plat).catch(() => null)
    return client !== null
  }, 'the server')
  assert.ok(client !== null)
  const one = client
  // The client checks structured content against the output schemas that it has listed.
  const names = (await one.listTools()).tools.map(({ name }) => name)
  assert.deepEqual(names.toSorted(), ['add_item', 'get_item', 'label', 'list_items'])
  const call = async (name: string, args: Record<string, unknown>) => {
    const result = await one.callTool({ name, arguments: args })
    return result.isError === true ? JSON.stringify(result.content) : result.structuredContent
  }
  const body = { name: 'chair', tags: ['a b', 'c'], parent: { name: 'room' } }
  assert.deepEqual(await call('add_item', { body }), { result: 1 })
  assert.deepEqual(await call('get_item', { item_id: 1 }), {
    ...body,
    parent: { ...body.parent, tags: [], parent: null },
  })
  assert.deepEqual(await call('list_items', { tag: ['a b', 'c'] }), { result: ['chair'] })
  assert.deepEqual(await call('list_items', { tag: ['d'] }), { result: [] })
  assert.deepEqual(await call('label', { body: { text: 'x & y', size: 2 } }), { result: 'x & y 2' })
  assert.match(
    String(await call('add_item', { body: { name: 'x' } })),
    /arguments\/body\/name: must have at least 2 characters/,
  )
  assert.match(String(await call('get_item', { item_id: 9 })), /The API answered 404: .*no item 9/)
  await one.close()
})
