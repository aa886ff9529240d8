import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { askAt } from './testing/client.ts'
import { startPlane } from './testing/gateway.ts'

const LONG = 500_000
const long = 'a'.repeat(LONG)
const bodies = [
  { method: 'tools/call', params: { name: long } },
  { method: 'tools/call', params: { name: `secret${long}` } },
  { method: 'prompts/get', params: { name: long } },
  { method: 'resources/read', params: { uri: `file:///${long}` } },
  { method: long },
  { method: `notifications/${long}` },
]

test('a caller cannot fill the ledger or a response with names as long as its body', async (t) => {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  const allows = (tool: string) => !tool.startsWith('secret')
  const gateway = await startPlane({ servers: { notes: { url: upstream.url } }, allows, scopes: ['tools:notes'] })
  t.after(() => gateway.close())
  for (const body of bodies) {
    const before = gateway.records.length
    const response = await askAt(gateway.url, { body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }) })
    const text = await response.text()
    const records = JSON.stringify(gateway.records.slice(before))
    assert.match(text, /"error"/, body.method.slice(0, 20))
    assert.ok(text.length < 6_000 && records.length < 6_000, `${body.method.slice(0, 20)}: ${records.length}`)
  }
  assert.equal(upstream.received.length, 0)
})
