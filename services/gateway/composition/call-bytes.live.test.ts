import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import { started, TOKEN } from '../testing/started.ts'

test('a gateway shows the bytes of bodies that calls hold, and none after their callers have left', async (t) => {
  const { gateway, issuer } = await started(t, {})
  const used = async () => {
    const response = await fetch(`${gateway.adminUrl}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })
    return Number(/^plat_gateway_pool_used\{pool="call_bytes"\} (\d+)$/m.exec(await response.text())?.[1])
  }
  assert.equal(await used(), 0)
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.write(
    `POST /mcp/notes HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${issuer.token({ scope: 'tools:notes' })}\r\n` +
      `content-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: 200000\r\n\r\n`,
  )
  socket.write('x'.repeat(100_000))
  await until(async () => (await used()) === 100_000, 'the bytes to be counted')
  socket.destroy()
  await until(async () => (await used()) === 0, 'the bytes to be free')
})
