import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { silentLog } from '@plat/process'
import { closed, freePort, listening } from '@plat/testkit/local'
import { askAt, call } from '../testing/client.ts'
import { startPlane } from '../testing/gateway.ts'

const ANSWER = '{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'

test('a server that cannot be reached is logged once, and once more when it is back', async () => {
  const port = await freePort()
  const lines: string[] = []
  const record = (fields: object, message: string) =>
    void lines.push(`${message} ${JSON.stringify(Object.values(fields))}`)
  const gateway = await startPlane({
    servers: { notes: { url: `http://127.0.0.1:${port}/mcp` } },
    options: { log: { ...silentLog, warn: record, info: record } },
  })
  const ask = async () => {
    const response = await askAt(gateway.url, { body: call('add') })
    return JSON.parse(await response.text()).result
  }
  for (let times = 0; times < 3; times++) {
    const { content, isError } = await ask()
    assert.equal(isError, true)
    assert.match(content[0].text, /^add was not run: notes cannot be reached\./)
  }
  assert.deepEqual(lines, [
    'the server cannot be reached: its calls fail ["test/notes","it does not accept connections"]',
  ])
  let answers = true
  const server = createServer((_request, response) => {
    if (answers) response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER)
    else response.destroy()
  })
  await listening(server, '127.0.0.1', port)
  for (let times = 0; times < 3; times++) assert.deepEqual((await ask()).content, [])
  assert.deepEqual(lines.slice(1), ['the server can be reached again ["test/notes",true]'])
  // A tool whose call breaks the connection may have run, and its server can be reached.
  answers = false
  assert.match((await ask()).content[0].text, /^add failed: .* It may have run: check that first\./)
  assert.equal(lines.length, 2)
  await closed(server)
  await gateway.close()
})
