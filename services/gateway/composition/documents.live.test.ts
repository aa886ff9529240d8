import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { awsCredentials, azureToken, type CloudConfig, gcpToken } from '@plat/cloud'
import { noClouds } from '@plat/cloud/testing'
import { reasonOf, systemClock } from '@plat/core'
import { createDialer, type Dialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { DOCUMENT_MARK, hostileDocuments, startDocumentServer } from '@plat/testkit/faults/documents'
import { discoverIssuer, jwksSource } from '@plat/tokens'
import { askToken } from '../authn/credentials/endpoint.ts'
import { setUpCluster } from '../builtin/k8s-ops/testing/fixture.ts'
import { Material } from '../evidence/audit-sinks/material.ts'
import { cloudWatchReceiver } from '../evidence/audit-sinks/receivers/cloudwatch.ts'
import { recordOf, sinkConfig } from '../evidence/audit-sinks/testing/fixture.ts'
import { Collector } from '../evidence/otel/export/post.ts'

const KIB = 1024

interface Served {
  readonly url: string
  readonly host: string
  readonly dialer: Dialer
}

/** A reader of documents from the network: a valid one, its limit, and what it reports; `ok`: it accepted the document. */
interface Reader {
  readonly valid: object
  readonly maxBytes: number
  read(served: Served): Promise<string>
  /** Faults that are not faults of this document. */
  readonly accepts?: readonly string[]
}

const accepted = async (reading: Promise<unknown>) =>
  reading.then(
    (value) => (typeof value === 'string' ? value : 'ok'),
    (error: unknown) => reasonOf(error),
  )

const cloudParts = (dialer: Dialer, config: Partial<CloudConfig>, env: NodeJS.ProcessEnv = {}) => ({
  ...{ env, dialer, clock: systemClock, log: silentLog },
  config: { ...noClouds, ...config },
})

const TOKEN = { access_token: 'token', token_type: 'Bearer', expires_in: 3600 }

const READERS: Readonly<Record<string, Reader>> = {
  'the token endpoint of a server': {
    valid: TOKEN,
    maxBytes: 64 * KIB,
    read: ({ url, dialer }) =>
      accepted(askToken(dialer, { url, form: new URLSearchParams(), client: null, caPEM: null })),
  },
  'the metadata server of Google Cloud': {
    valid: TOKEN,
    maxBytes: 64 * KIB,
    read: ({ host, dialer }) => accepted(gcpToken(cloudParts(dialer, { gcp: { metadataHost: host } }))),
  },
  'the identity endpoint of Azure': {
    valid: TOKEN,
    maxBytes: 64 * KIB,
    read({ url, dialer }) {
      const env = { IDENTITY_ENDPOINT: `${url}/msi`, IDENTITY_HEADER: 'h' }
      const azure = { managedIdentity: true, identityBinding: false }
      return accepted(azureToken(cloudParts(dialer, { azure }, env), 'cognitiveservices'))
    },
  },
  'discovery of an issuer': {
    valid: {},
    maxBytes: 256 * KIB,
    async read({ url, dialer }) {
      return accepted(discoverIssuer({ issuer: url, dialer, caPEM: null }))
    },
  },
  'a key set': {
    valid: { keys: [] },
    maxBytes: 1024 * KIB,
    async read({ url, dialer }) {
      const warnings: string[] = []
      const warn = (fields: object) => void warnings.push(String(Object(fields).error ?? 'no keys'))
      const log = { info() {}, warn }
      const source = jwksSource({ url, refreshSeconds: 300, dialer, clock: systemClock, log })
      await source.start()
      source.close()
      return warnings.join() === 'no keys' ? 'ok' : warnings.join()
    },
  },
  'a collector of spans': {
    valid: { partialSuccess: {} },
    maxBytes: 64 * KIB,
    // OTLP/HTTP lets the body be empty.
    accepts: ['nothing'],
    async read({ url, dialer }) {
      const config = { endpoint: url, jurisdiction: '', headersFile: '', caFile: '', exportTimeoutSeconds: 60 }
      const posted = await new Collector(config, dialer).post('{}', new AbortController().signal)
      return posted.kind === 'taken' ? 'ok' : posted.reason
    },
  },
  'CloudWatch Logs': {
    valid: { nextSequenceToken: 't' },
    maxBytes: 256 * KIB,
    accepts: ['nothing'],
    async read({ url, dialer }) {
      const config = sinkConfig({ type: 'cloudwatch', url: `${url}/`, region: 'eu-central-1' })
      const credentials = async () => ({ accessKeyId: 'a', secretAccessKey: 's', sessionToken: null })
      const material = new Material(config)
      const to = cloudWatchReceiver({ config, dialer, material, clock: systemClock, credentials })
      const record = recordOf({})
      const delivery = to.deliver([{ record, text: to.write(record) }])
      return accepted(delivery.then((it) => (it.kind === 'accepted' ? 'ok' : it.reason)))
    },
  },
}

for (const [name, { valid, maxBytes, read, accepts = [] }] of Object.entries(READERS))
  test(`${name}: only strict JSON of its limit and shape is accepted, and a fault is one line without its content`, async (t) => {
    const { url, host, next } = await startDocumentServer(t)
    const dialer = createDialer({ log: silentLog })
    t.after(() => dialer.close())
    const document = name.startsWith('discovery') ? { issuer: url } : valid
    next(document)
    assert.equal(await read({ url, host, dialer }), 'ok')
    for (const [fault, bytes] of hostileDocuments(document, maxBytes)) {
      next(bytes)
      const outcome = await read({ url, host, dialer })
      if (accepts.includes(fault)) assert.equal(outcome, 'ok')
      else assert.match(outcome, /^(?!ok$).{1,200}$/, fault)
      assert.ok(!outcome.includes(DOCUMENT_MARK), fault)
    }
  })

test('a web identity or a role of AWS: only strict JSON is accepted', async (t: TestContext) => {
  const { url, next } = await startDocumentServer(t)
  const dialer = createDialer({ log: silentLog })
  t.after(() => dialer.close())
  const end = Math.floor(systemClock.now() / 1000) + 3600
  const Credentials = { AccessKeyId: 'A', SecretAccessKey: 's', SessionToken: 't', Expiration: end }
  const valid = { AssumeRoleWithWebIdentityResponse: { AssumeRoleWithWebIdentityResult: { Credentials } } }
  const env = { AWS_WEB_IDENTITY_TOKEN_FILE: import.meta.filename, AWS_ROLE_ARN: 'r' }
  const parts = cloudParts(dialer, { aws: { ...noClouds.aws, stsEndpoint: `${url}/` } }, env)
  next(valid)
  assert.equal(await accepted(awsCredentials(parts)), 'ok')
  for (const [fault, bytes] of hostileDocuments(valid, 64 * KIB)) {
    next(bytes)
    assert.match(await accepted(awsCredentials(parts)), /^AWS STS .{1,100}$/, fault)
  }
})

test('the API server of a cluster: only strict JSON is accepted', async (t) => {
  let body: Uint8Array = Buffer.from('{"kind":"Pod","metadata":{}}')
  const cluster = await setUpCluster(t, { answer: (_, response) => void response.writeHead(200).end(body) })
  const get = async () => String(await cluster.call('k8s_get', { kind: 'Pod', namespace: 'shop', name: 'web' }))
  assert.match(await get(), /"kind":\s*"Pod"/)
  for (const [fault, bytes] of hostileDocuments({ kind: 'Pod', metadata: {} }, 8 * KIB * KIB)) {
    body = bytes
    assert.match(await get(), /^error: (?:the cluster|no response from the cluster).{1,200}$/, fault)
  }
})
