import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { NO_CREDENTIAL } from '../../call/index.ts'
import { askAt, call } from './testing/client.ts'
import { startPlane } from './testing/gateway.ts'

const ANSWER = '{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'

const cases = [
  { what: 'a renewed credential that is accepted', accepted: 'new', recorded: /"status":401.*"status":200/ },
  { what: 'a renewed credential that is refused as well', accepted: 'another', recorded: /^\[\]$/ },
]

for (const { what, accepted, recorded } of cases) {
  test(`${what} causes a second attempt and no third, and is recorded`, async () => {
    const upstream = await startScriptedUpstream()
    upstream.answers(({ headers }, response) => {
      const status = headers.authorization === `Bearer ${accepted}` ? 200 : 401
      response.writeHead(status, { 'content-type': 'application/json' }).end(ANSWER)
    })
    const credential = (token: string) => ({ ...NO_CREDENTIAL, headers: { authorization: `Bearer ${token}` } })
    const gateway = await startPlane({
      servers: { notes: { url: upstream.url } },
      options: { credentials: { of: () => credential('old'), renewed: async () => credential('new') } },
    })
    try {
      await (await askAt(gateway.url, { body: call('add') })).text()
      const presented = upstream.received.map(({ headers }) => headers.authorization)
      assert.deepEqual(presented, ['Bearer old', 'Bearer new'])
      const outcome = gateway.records.find(({ kind }) => kind === 'outcome')
      assert.match(JSON.stringify(outcome?.attempts), recorded)
    } finally {
      await gateway.close()
      await upstream.close()
    }
  })
}
