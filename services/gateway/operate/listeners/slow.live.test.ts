import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { started } from '../../testing/started.ts'

const CALL =
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{},"_meta":{"progressToken":1}}}'
const RESULT = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
const NOTE = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"${'x'.repeat(64 * 1024)}"}}`
/** 64 MiB: far more than socket and gateway buffers for a client that does not read. */
const EVENTS = 1024
/** A server that could not write for this long, in milliseconds, is being held back. */
const STALLED_MS = 1000

test('a client that does not read causes backpressure on its server, and misses no event', async (t) => {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  let written = 0
  upstream.answers(async (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    while (written < EVENTS) {
      written++
      if (!response.write(`event: message\ndata: ${NOTE}\n\n`)) await once(response, 'drain')
    }
    response.end(`event: message\ndata: ${RESULT}\n\n`)
  })
  const { gateway, issuer } = await started(t, { upstreams: { notes: upstream.url } })
  const socket = connect(gateway.port, '127.0.0.1')
  socket.pause()
  const head = [
    'POST /mcp/notes HTTP/1.1',
    'host: localhost',
    `authorization: Bearer ${issuer.token()}`,
    'accept: application/json, text/event-stream',
    'content-type: application/json',
    `content-length: ${CALL.length}`,
    'connection: close',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${CALL}`)
  await until(() => written > 0, 'the stream')
  for (let before = -1; before !== written; await sleep(STALLED_MS)) before = written
  assert.ok(written < EVENTS / 2, `${written} of ${EVENTS} events were accepted while the client did not read`)
  let notes = 0
  let rest = ''
  socket.on('data', (chunk) => {
    const parts = (rest + chunk.toString('latin1')).split('notifications/message')
    notes += parts.length - 1
    rest = parts.at(-1)?.slice(-RESULT.length - 200) ?? ''
  })
  socket.resume()
  await once(socket, 'close')
  assert.equal(notes, EVENTS)
  assert.ok(rest.includes(RESULT))
})
