import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { systemClock } from '@plat/core'
import { startTestIdentity, type TestIdentity } from '@plat/testkit/identity'
import { until } from '@plat/testkit/until'
import { MAX_ENDED_PER_NAMESPACE } from '../render/limits/ended.ts'
import { PLAT, setUpCluster, TEAM } from './testing/cluster.ts'

let identity: TestIdentity

before(async () => {
  identity = await startTestIdentity()
})

after(async () => {
  await identity?.stop()
})

test('sessions wait while too many of their namespace have just ended; each of those is refused, and others begin', async (t) => {
  const { server, start, session, statusOf, condition } = await setUpCluster(t, { identity })
  const ended = new Date(systemClock.now() - 60_000).toISOString()
  const ready = { type: 'Ready', status: 'False', reason: 'Succeeded', message: '', lastTransitionTime: ended }
  const status = { phase: 'Succeeded', startedAt: ended, conditions: [ready] }
  for (let index = 0; index < MAX_ENDED_PER_NAMESPACE; index++)
    server.put(`${TEAM}/agentsessions/e${index}`, { spec: { agentRef: 'a' }, status })
  const others = `${PLAT}/namespaces/other`
  server.put(`${others}/agents/a`, { spec: { image: 'i', tier: 't' } })
  server.put(`${others}/agentsessions/s`, { spec: { agentRef: 'a' } })
  session()
  await start()
  await until(() => condition('Ready')?.reason === 'TooManyEnded', 'it waits')
  assert.equal(statusOf().phase, 'Pending')
  await until(
    () => Object(server.get(`${others}/agentsessions/s`)).status?.phase === 'Preparing',
    'the other one begins',
  )
  const packed = () =>
    Object(Object(server.get('/api/v1/namespaces/plat-system/configmaps/plat-revocations')).binaryData)
  await until(() => packed()['revocations.json.gz'] !== undefined, 'the revocations')
  const text = gunzipSync(Buffer.from(packed()['revocations.json.gz'], 'base64')).toString()
  assert.equal(JSON.parse(text).revocations.length, MAX_ENDED_PER_NAMESPACE)
})
