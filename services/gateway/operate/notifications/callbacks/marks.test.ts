import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { poolTable, TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { memoryOnceSets } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import fastify from 'fastify'
import { configWith } from '../../../testing/configured.ts'
import { webhookSignature } from '../targets/webhook.ts'
import { CallbackRoutes } from './routes.ts'

const SECRET = 'the-signing-secret'
const SHARE = poolTable.callback_marks.shares[0].max

/** Routes of two notifiers without approvals: a callback that is accepted ends with 404. */
async function routes() {
  const clock = new TestClock()
  const signingSecretFile = join(tempFolder(), 'secret')
  writeFileSync(signingSecretFile, SECRET)
  const named = (name: string) =>
    ({ name, type: 'webhook', url: 'https://hook.example', signingSecretFile, userMap: { ada: 'ada' } }) as const
  const { notifiers } = configWith({ notifiers: [named('greedy'), named('other')] })
  const refused: string[] = []
  const observer = { refused: (bound: string) => void refused.push(bound), watch() {} }
  const app = fastify()
  new CallbackRoutes({
    ...{ clock, once: memoryOnceSets(clock), log: silentLog, extraCA: null, pools: { of: () => observer } },
    dialer: { fetchBytes: () => assert.fail('nothing is sent') },
    callers: new Map(notifiers.map((config) => [config.name, { config, field: config.name, bearer: null }])),
    decider: {
      placeOf: () => null,
      decide: () => assert.fail('there is no approval'),
      personOf: () => [],
      view: () => null,
      mayApprove: () => false,
    },
  }).mount(app)
  await app.ready()
  const call = async (notifier: string, id: string) => {
    const timestamp = String(Math.floor(clock.now() / 1000))
    const body = JSON.stringify({ approval: 'none', verdict: 'deny', user: 'ada' })
    const signature = webhookSignature(Buffer.from(SECRET), { id, timestamp, body })
    const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature }
    const url = `/v1/notifiers/${notifier}/callback`
    return (await app.inject({ method: 'POST', url, headers, payload: body })).statusCode
  }
  return { app, clock, call, refused }
}

test('a notifier that used its share of callbacks is refused until they expire, and another one is served', async (t) => {
  const { app, clock, call, refused } = await routes()
  t.after(() => app.close())
  const accepted = await Promise.all(Array.from({ length: SHARE }, (_, n) => call('greedy', `m${n}`)))
  assert.deepEqual([...new Set(accepted)], [404])
  assert.deepEqual([await call('greedy', 'next'), await call('greedy', 'm0')], [503, 409])
  assert.equal(await call('other', 'next'), 404)
  assert.deepEqual(refused, ['share'])
  await clock.advance(11 * 60_000)
  assert.equal(await call('greedy', 'later'), 404)
})
