import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { NO_CREDENTIAL } from '../../call/index.ts'
import { askAt, call } from './testing/client.ts'
import { startPlane } from './testing/gateway.ts'

const ANSWER = '{"jsonrpc":"2.0","id":7,"result":{"content":[]}}'

const cases = [
  { what: 'a renewed credential that is accepted', accepted: 'new', told: /"status":401.*"status":200/ },
  { what: 'a renewed credential that is refused as well', accepted: 'another', told: /^\[\]$/ },
]

for (const { what, accepted, told } of cases) {
  test(`${what} makes a second attempt and no third, and the record tells it`, async () => {
    const upstream = await startScriptedUpstream()
    upstream.answers(({ headers }, response) => {
      const status = headers.authorization === `Bearer ${accepted}` ? 200 : 401
      response.writeHead(status, { 'content-type': 'application/json' }).end(ANSWER)
    })
    const shown = (token: string) => ({ ...NO_CREDENTIAL, headers: { authorization: `Bearer ${token}` } })
    const gateway = await startPlane({
      servers: { notes: { url: upstream.url } },
      options: { credentials: { of: () => shown('old'), renewed: async () => shown('new') } },
    })
    try {
      await (await askAt(gateway.url, { body: call('add') })).text()
      const shownThere = upstream.received.map(({ headers }) => headers.authorization)
      assert.deepEqual(shownThere, ['Bearer old', 'Bearer new'])
      const outcome = gateway.records.find(({ kind }) => kind === 'outcome')
      assert.match(JSON.stringify(outcome?.attempts), told)
    } finally {
      await gateway.close()
      await upstream.close()
    }
  })
}
