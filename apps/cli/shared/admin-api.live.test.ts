import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { listening } from '@plat/testkit/local'
import { adminList } from './admin-api.ts'

test('a list is read page by page, and one whose cursor comes again is refused', async (t) => {
  const next: Record<string, string | null> = { '': 'a', a: 'b', b: null }
  const server = createServer((request, response) => {
    const cursor = new URL(request.url ?? '', 'http://x').searchParams.get('cursor') ?? ''
    const page = { items: [cursor], nextCursor: next[cursor] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(page))
  })
  const port = await listening(server)
  t.after(() => server.close())
  const env = {
    PLAT_GATEWAY_URL: '',
    PLAT_IDENTITY_URL: '',
    PLAT_BROKER_TOKEN: '',
    PLAT_ADMIN_TOKEN: 't',
    PLAT_ADMIN_URL: `http://127.0.0.1:${port}`,
  }
  const list = () => adminList(env, '/v1/pins', (item): item is string => typeof item === 'string')
  assert.deepEqual(await list(), ['', 'a', 'b'])
  next.b = 'a'
  await assert.rejects(list(), { message: 'the gateway repeats a page of /v1/pins: its cursor came before' })
})
