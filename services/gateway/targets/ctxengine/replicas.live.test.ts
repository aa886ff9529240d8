import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startContextEngine } from '@plat/testkit/context-engine'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { testIssuer } from '@plat/testkit/identity'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'

const ADMIN = 'an-admin-token-of-the-test'
const SUB = 'spiffe://plat.local/ns/default/agent/assistant/session'

/** An engine, and gateways that use it, each with a folder for its ledger. */
async function setUp(t: TestContext) {
  const engine = await startContextEngine()
  t.after(() => engine.close())
  const [issuer, quarantineSnapshotDir] = [testIssuer(), tempFolder()]
  const start = async (dir: string) => {
    const gateway = await startGatewayProcess({
      servers: {},
      issuer,
      config: {
        auditPath: join(dir, 'audit.jsonl'),
        ctxengine: { upstream: engine.url, quarantineSnapshotDir },
        models: { r: { provider: 'ctxengine' } },
      },
      env: { PLAT_ADMIN_TOKEN: ADMIN },
    })
    t.after(() => gateway.close())
    const say = async (content: string, session = 's1') => {
      const mine = { plat_session: session, sub: `${SUB}/${session}`, scope: 'models:r' }
      const response = await fetch(`${gateway.url}/llm/r/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${issuer.token(mine)}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }),
      })
      const body = JSON.parse(await response.text())
      return response.status === 200 ? body.choices[0].message.content : response.status
    }
    const revoke = async (session: string) => {
      const headers = { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ target: { session: `default/assistant/${session}` } })
      const { status } = await fetch(`${gateway.url}/v1/revocations`, { method: 'POST', headers, body })
      assert.equal(status, 201)
    }
    const quarantined = () =>
      wholeLines(join(dir, 'audit.jsonl'))
        .map((line) => JSON.parse(line).rec)
        .filter(({ alert }) => alert === 'context.quarantined')
    return { gateway, say, revoke, quarantined }
  }
  const saved = () =>
    readdirSync(quarantineSnapshotDir).map((name) => readFileSync(join(quarantineSnapshotDir, name), 'utf8'))
  return { engine, start, saved }
}

test('two replicas use one context of a session, and it is saved once when the session is revoked', async (t) => {
  const { engine, start, saved } = await setUp(t)
  const [one, other] = [await start(tempFolder()), await start(tempFolder())]
  assert.equal(await one.say('a'), 'a')
  assert.equal(await other.say('b'), 'a|b')
  assert.equal(await one.say('c'), 'a|b|c')
  assert.equal(engine.contexts.size, 1)
  await one.revoke('s1')
  await until(() => one.quarantined().length === 1, 'the record of the first replica')
  await until(() => engine.contexts.size === 0, 'the dropped context')
  // The other replica finds the context gone, and stops.
  await other.revoke('s1')
  const saves = () => engine.requests.filter((request) => request.endsWith('/save')).length
  await until(() => saves() === 2, 'the request of the other replica')
  const before = engine.requests.length
  await until(() => engine.requests.length > before || engine.requests.at(-1)?.startsWith('DELETE') === true, 'its end')
  assert.deepEqual([saved(), other.quarantined(), saves()], [['["a","b","c"]'], [], 2])
})

for (const end of ['close', 'kill'] as const) {
  test(`the context of a session that is revoked after a restart (${end}) is saved and dropped, without a call in between`, async (t) => {
    const { engine, start, saved } = await setUp(t)
    const dir = tempFolder()
    const first = await start(dir)
    for (const session of ['s1', 's2'])
      assert.equal(await first.say(`secret of ${session}`, session), `secret of ${session}`)
    await first.gateway[end]()
    const second = await start(dir)
    await second.revoke('s1')
    await until(() => second.quarantined().length === 1, 'the record')
    await until(() => engine.contexts.size === 1, 'the dropped context')
    assert.deepEqual(saved(), ['["secret of s1"]'])
    // A third run finds only the context that is left.
    await second.gateway.close()
    const third = await start(dir)
    assert.equal(await third.say('more', 's2'), 'secret of s2|more')
    await third.revoke('s2')
    await until(() => engine.contexts.size === 0, 'the last context')
    assert.equal(engine.requests.filter((request) => request.endsWith('/save')).length, 2)
  })
}
