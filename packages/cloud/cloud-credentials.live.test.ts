import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { closed, listening } from '@plat/testkit/local'
import { createCloudCredentials } from './cloud-credentials.ts'
import { noClouds } from './testing.ts'

/** A token endpoint that numbers its responses, with a log of its requests. */
async function authority(t: TestContext) {
  const requests: string[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    requests.push(`${request.url} ${decodeURIComponent(Buffer.concat(chunks).toString())}`)
    response.end(JSON.stringify({ access_token: `token-${requests.length}`, expires_in: 3600, token_type: 'Bearer' }))
  })
  const port = await listening(server)
  t.after(() => closed(server))
  return { requests, host: `127.0.0.1:${port}` }
}

function loans(t: TestContext, env: NodeJS.ProcessEnv, gcp = noClouds.gcp) {
  const dialer = createDialer({ log: silentLog })
  const made = createCloudCredentials({
    config: { cloudCredentials: { ...noClouds, gcp } },
    env,
    dialer,
    clock: systemClock,
    log: silentLog,
  })
  t.after(() => {
    made.close()
    dialer.close()
  })
  return made
}

test('a token is fetched at its first use, once for many uses, and for the ingestion of logs', async (t) => {
  const entra = await authority(t)
  const env = {
    AZURE_TENANT_ID: 't',
    AZURE_CLIENT_ID: 'c',
    AZURE_CLIENT_SECRET: 's',
    AZURE_AUTHORITY_HOST: `http://${entra.host}`,
  }
  const made = loans(t, env)
  assert.deepEqual(entra.requests, [])
  assert.deepEqual(await Promise.all([made.azure(), made.azure(), made.azure()]), ['token-1', 'token-1', 'token-1'])
  assert.equal(entra.requests.length, 1)
  assert.match(entra.requests[0] ?? '', /^\/t\/oauth2\/v2\.0\/token .*scope=https:\/\/monitor\.azure\.com\/\.default/)
})

test('google uses the metadata server, aws the environment; a missing source is an error', async (t) => {
  const metadata = await authority(t)
  const keys = { AWS_ACCESS_KEY_ID: 'AKID', AWS_SECRET_ACCESS_KEY: 'secret' }
  const made = loans(t, keys, { metadataHost: metadata.host })
  assert.equal(await made.gcp(), 'token-1')
  assert.deepEqual(await made.aws(), { accessKeyId: 'AKID', secretAccessKey: 'secret', sessionToken: null })
  await assert.rejects(made.azure(), /^CloudCredentialError: cloudCredentials: none of Azure now/)
})
