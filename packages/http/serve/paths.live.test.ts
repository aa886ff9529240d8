import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Exchange } from './listen.ts'
import { raw, serving } from './testing/serving.ts'

test('one trailing slash of a path is ignored before routing; any other spelling is another path', async () => {
  const echoed = { prefix: '/mcp/', handle: ({ request, response }: Exchange) => void response.end(request.url) }
  await serving(
    { raw: [echoed], api: (app) => void app.get('/hello', async () => ({ hello: true })) },
    async ({ port }) => {
      const cases: Readonly<Record<string, RegExp>> = {
        '/mcp/x': / 200 .*\/mcp\/x$/s,
        '/mcp/x/': / 200 .*\/mcp\/x$/s,
        '/mcp/x/?a=/b/': / 200 .*\/mcp\/x\?a=\/b\/$/s,
        '/mcp/x?a=b/': / 200 .*\/mcp\/x\?a=b\/$/s,
        '/mcp/x//': / 200 .*\/mcp\/x\/\/$/s,
        '/mcp/x%2f': / 200 .*\/mcp\/x%2f$/s,
        '/mcp/x/./': / 200 .*\/mcp\/x\/\.$/s,
        '/mcp/': / 404 /,
        '/hello/': / 200 /,
        '/hello/?x': / 200 /,
        '/hello//': / 404 /,
        '/hello/%2f': / 404 /,
        '/hello/./': / 404 /,
        '//hello': / 404 /,
        '//': / 404 /,
      }
      for (const [path, answer] of Object.entries(cases))
        assert.match(
          await raw(port, `GET ${path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n`),
          answer,
          path,
        )
    },
  )
})
