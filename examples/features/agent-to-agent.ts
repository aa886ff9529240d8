/**
 * One agent calls another through the gateway (A2A 1.0), which says who calls and limits who may.
 *
 * Prints:
 *   assistant: hello assistant
 *   stranger: a2a/default/researcher does not admit default/stranger
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { start } from './plat.ts'

// The researcher: the gateway is the only caller, and names the caller in headers that no agent can set.
const researcher = createServer(async (request, response) => {
  const { id }: { id?: unknown } = Object(await json(request))
  const text = `hello ${request.headers['x-plat-agent']}`
  const message = { messageId: '2', role: 'ROLE_AGENT', parts: [{ text }] }
  response
    .setHeader('content-type', 'application/json')
    .end(JSON.stringify({ jsonrpc: '2.0', id, result: { message } }))
})
await once(researcher.listen(0, '127.0.0.1'), 'listening')
const { port } = Object(researcher.address())
const a2a = `a2a: { expose: true, endpoint: "http://localhost:${port}/a2a", allowedCallers: [assistant] }`
await using plat = await start({
  resources: { 'Agent/researcher': `image: example.com/researcher:1\ntier: tier-0\npolicyRef: assistant\n${a2a}` },
})
for (const agent of ['assistant', 'stranger']) {
  const session = await plat.session(agent, ['agents:researcher'])
  const params = { message: { messageId: '1', role: 'ROLE_USER', parts: [{ text: 'hello' }] } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params })
  const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' }
  const url = `${plat.env.PLAT_GATEWAY_URL}/a2a/default/researcher`
  const { result, error } = Object(await session.fetch(url, { method: 'POST', headers, body }).then((it) => it.json()))
  console.log(`${agent}: ${result?.message.parts[0].text ?? error.message}`)
  session.close()
}
researcher.close()
