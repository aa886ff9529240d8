import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { startTestIdentity, type TestIdentity } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { startTestService, type TestService } from '@plat/testkit/processes/service'
import { until } from '@plat/testkit/until'
import { SANDBOXES, SECRETS, setUpCluster, TEAM } from './testing/cluster.ts'

const TOKEN = 'attestation-secret'
const SECRET = `${SECRETS}/plat-session-s`

let identity: TestIdentity
let service: TestService

before(async () => {
  identity = await startTestIdentity(['-attested-tiers', 't'])
  const env = { PLAT_ATTESTATION_TOKEN: TOKEN, PLAT_BROKER_TOKEN: identity.brokerToken }
  const statePath = path.join(tempFolder(), 'releases.jsonl')
  service = await startTestService('attestation', {
    env,
    flags: ['-broker-url', identity.url, '-state-path', statePath],
  })
})

after(async () => {
  await service?.stop()
  await identity?.stop()
})

/** A cluster whose tier `t` is attested, and the state of a release as the service has it. */
async function setUp(t: TestContext, tier: object = {}) {
  const attestation = { url: service.url, token: TOKEN }
  const cluster = await setUpCluster(t, { identity, attestation, tier: { attested: true, ...tier } })
  const { session, statusOf } = cluster
  await cluster.start()
  return {
    ...cluster,
    /** Starts a session that has a release. */
    async begin() {
      // Unlike those of other tests, so that each has its own release.
      session({ user: t.name })
      await until(() => statusOf().env?.PLAT_RELEASE_ID !== undefined, 'the release')
      return statusOf().env ?? {}
    },
    async stateOf(releaseId: string | undefined): Promise<string> {
      const response = await fetch(`${service.url}/v1/releases/state`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({ releaseId }),
      })
      return Object(await response.json()).state
    },
  }
}

test('an attested session has a release and no token, and the release ends with the session', async (t) => {
  const { server, at, begin, stateOf, says, reaches, change } = await setUp(t)
  const { PLAT_RELEASE_ID: id, PLAT_ATTESTATION_URL: url } = await begin()
  assert.equal(url, service.url)
  assert.equal(await stateOf(id), 'pending')
  await until(() => server.get(`${SANDBOXES}/s`) !== undefined, 'the Sandbox')
  const { data } = Object(server.get(SECRET))
  assert.deepEqual(data, { release: Buffer.from(id ?? '').toString('base64') })
  const pod = JSON.stringify(at(`${SANDBOXES}/s`).spec)
  assert.match(
    pod,
    /"name":"PLAT_RELEASE_ID","valueFrom":\{"secretKeyRef":\{"name":"plat-session-s","key":"release"\}\}/,
  )
  assert.doesNotMatch(pod, /PLAT_TOKEN_FILE/)
  says('s', 'Ready')
  await reaches('Running')
  change({ cancel: true })
  await reaches('Cancelled')
  assert.equal(await stateOf(id), 'ended')
  assert.equal(server.get(SECRET), undefined)
})

test('a session that is resumed has another release, and a new leader keeps the one that it has', async (t) => {
  const { server, begin, stateOf, says, reaches, change, statusOf, restart } = await setUp(t)
  const { PLAT_RELEASE_ID: first } = await begin()
  await until(() => server.get(`${SANDBOXES}/s`) !== undefined, 'the Sandbox')
  says('s', 'Ready')
  await reaches('Running')
  await restart()
  change({ suspend: true })
  await reaches('Suspended')
  assert.equal(await stateOf(first), 'ended')
  assert.deepEqual([statusOf().env?.PLAT_RELEASE_ID, server.get(SECRET)], [undefined, undefined])
  change({ suspend: false })
  await until(() => statusOf().env?.PLAT_RELEASE_ID !== undefined, 'another release')
  const { PLAT_RELEASE_ID: second } = statusOf().env ?? {}
  assert.notEqual(second, first)
  assert.equal(await stateOf(second), 'pending')
  assert.equal(Object(server.get(SECRET)).data.release, Buffer.from(second ?? '').toString('base64'))
  await reaches('Running')
  change({ suspend: true })
  await until(() => server.get(SECRET) === undefined, 'the Secret is deleted again')
  await reaches('Suspended')
  change({ suspend: false })
  await until(() => statusOf().env?.PLAT_RELEASE_ID !== undefined, 'a third release')
  const { PLAT_RELEASE_ID: third } = statusOf().env ?? {}
  server.remove(`${TEAM}/agentsessions/s`)
  await until(async () => (await stateOf(third)) === 'ended', 'the release of a deleted session ends')
})

test('a session waits without a pod while its release is refused, and the condition says why', async (t) => {
  const { server, session, condition } = await setUp(t, { requireProof: ['Not A Check'] })
  session()
  await until(() => condition('Ready')?.reason === 'NotPrepared', 'the refusal is reported')
  assert.match(condition('Ready')?.message ?? '', /^the attestation service refuses with 400 .*checks/)
  assert.equal(server.get(`${SANDBOXES}/s`), undefined)
})
