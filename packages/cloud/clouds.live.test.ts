import assert from 'node:assert/strict'
import { createVerify, generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { systemClock, TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { type Log, silentLog } from '@plat/process'
import { createAuthority } from '@plat/testkit/authority'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { awsCredentials } from './aws.ts'
import { azureToken } from './azure.ts'
import { type CloudConfig, CloudCredentialError, type CloudParts } from './cloud.ts'
import { gcpToken } from './gcp.ts'
import { ociIdentity } from './oci.ts'
import { noClouds } from './testing.ts'

interface CloudRequest {
  readonly line: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}
type CloudResponse = (requests: CloudRequest) => object | string | number

/** A cloud on loopback with scripted responses, and 404 for all other paths. */
async function cloud(t: TestContext, answers: Readonly<Record<string, CloudResponse>>) {
  const requests: CloudRequest[] = []
  const server = createServer(listener(requests, answers))
  const url = `http://127.0.0.1:${await listening(server)}`
  t.after(() => closed(server))
  const dir = tempFolder()
  const file = async (name: string, content: string | object) => {
    const path = join(dir, name)
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
    return path
  }
  return { url, requests, file, dir }
}

function listener(requests: CloudRequest[], answers: Readonly<Record<string, CloudResponse>>): RequestListener {
  return async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const one = {
      line: `${request.method} ${request.url}`,
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
    }
    requests.push(one)
    send(response, answers[one.line]?.(one) ?? 404)
  }
}

function send(response: ServerResponse, answer: object | string | number): void {
  if (typeof answer === 'number') response.writeHead(answer).end('{"error":"s3cret-of-the-request"}')
  else response.writeHead(200).end(typeof answer === 'string' ? answer : JSON.stringify(answer))
}

function parts(t: TestContext, env: NodeJS.ProcessEnv, config: Partial<CloudConfig> = {}): CloudParts {
  const dialer = createDialer({ log: silentLog })
  t.after(() => dialer.close())
  return { env, dialer, clock: systemClock, log: silentLog, config: { ...noClouds, ...config } }
}

const ofModels = (cloudParts: CloudParts) => azureToken(cloudParts, 'cognitiveservices')
const fieldsOf = ({ body }: CloudRequest) => Object.fromEntries(new URLSearchParams(body))
const one = (requests: readonly CloudRequest[]) => requests.at(-1) ?? assert.fail('no request')

test('AWS: keys of the environment, else the web identity of a service account', async (t) => {
  // Shows D3.cloudCredentials.aws.stsEndpoint, D3.models.cloudCredentials
  const end = Math.floor(systemClock.now() / 1000) + 3600
  const credentials = { AccessKeyId: 'ASIA', SecretAccessKey: 'secret', SessionToken: 'session', Expiration: end }
  const { url, requests, file } = await cloud(t, {
    'POST /': () => ({
      AssumeRoleWithWebIdentityResponse: { AssumeRoleWithWebIdentityResult: { Credentials: credentials } },
    }),
  })
  const env = {
    AWS_WEB_IDENTITY_TOKEN_FILE: await file('token', 'of-kubernetes\n'),
    AWS_ROLE_ARN: 'arn:aws:iam::1:role/r',
  }
  const config = { aws: { ...noClouds.aws, stsEndpoint: `${url}/` } }
  assert.deepEqual(await awsCredentials(parts(t, env, config)), {
    value: { accessKeyId: 'ASIA', secretAccessKey: 'secret', sessionToken: 'session' },
    expiresAt: end * 1000,
  })
  assert.deepEqual(fieldsOf(one(requests)), {
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: 'arn:aws:iam::1:role/r',
    RoleSessionName: 'plat-gateway',
    WebIdentityToken: 'of-kubernetes',
  })
  const keys = { AWS_ACCESS_KEY_ID: 'AKIA', AWS_SECRET_ACCESS_KEY: 'own' }
  const own = { accessKeyId: 'AKIA', secretAccessKey: 'own', sessionToken: null }
  assert.deepEqual(await awsCredentials(parts(t, { ...env, ...keys }, config)), { value: own, expiresAt: null })
  assert.equal(requests.length, 1)
})

test('AWS: without an endpoint the regional one of STS is used, below the domain of the partition', async (t) => {
  // Shows D3.cloudCredentials.aws.partitionDNSSuffix, D3.default.computed.cloudCredentials.aws.partitionDNSSuffix and
  // D3.default.computed.cloudCredentials.aws.stsEndpoint.
  const { file } = await cloud(t, {})
  const env = { AWS_WEB_IDENTITY_TOKEN_FILE: await file('token', 'x'), AWS_ROLE_ARN: 'r' }
  const places: readonly (readonly [region: string, suffix: string, url: string])[] = [
    ['', '', 'https://sts.amazonaws.com/'],
    ['eu-central-1', '', 'https://sts.eu-central-1.amazonaws.com/'],
    ['cn-north-1', '', 'https://sts.cn-north-1.amazonaws.com.cn/'],
    ['eusc-de-east-1', '', 'https://sts.eusc-de-east-1.amazonaws.eu/'],
    ['new-region-1', 'aws.example', 'https://sts.new-region-1.aws.example/'],
  ]
  for (const [region, partitionDNSSuffix, expected] of places) {
    const seen: string[] = []
    const dialer: CloudParts['dialer'] = {
      fetchBytes: async (url) => {
        seen.push(String(url))
        throw new Error('unreachable')
      },
    }
    const config = { aws: { ...noClouds.aws, region, partitionDNSSuffix } }
    await assert.rejects(
      awsCredentials({ ...parts(t, env, config), dialer }),
      /^CloudCredentialError: AWS STS is not reachable: unreachable$/,
    )
    assert.deepEqual(seen, [expected])
  }
})

test('AWS: the role of the machine, with a token first, and only if configured', async (t) => {
  // Shows D3.cloudCredentials.aws.imds
  const role = '/latest/meta-data/iam/security-credentials/'
  const answer = { AccessKeyId: 'ASIA', SecretAccessKey: 's', Token: 't', Expiration: '2030-01-01T00:00:00Z' }
  const withToken =
    (value: object | string) =>
    ({ headers }: CloudRequest) =>
      headers['x-aws-ec2-metadata-token'] === 'v2' ? value : 401
  const { url, requests } = await cloud(t, {
    'PUT /latest/api/token': ({ headers }) => (headers['x-aws-ec2-metadata-token-ttl-seconds'] === '300' ? 'v2' : 400),
    [`GET ${role}`]: withToken('my-role'),
    [`GET ${role}my-role`]: withToken(answer),
  })
  const env = { AWS_EC2_METADATA_SERVICE_ENDPOINT: url }
  await assert.rejects(awsCredentials(parts(t, env)), /cloudCredentials\.aws\.imds/)
  assert.equal(requests.length, 0)
  const { value, expiresAt } = await awsCredentials(parts(t, env, { aws: { ...noClouds.aws, imds: true } }))
  assert.deepEqual([value.accessKeyId, value.sessionToken, expiresAt], ['ASIA', 't', Date.UTC(2030, 0, 1)])
})

const lasting = { access_token: 'ya29', expires_in: 3600 }

test('Google Cloud: a service account signs its assertion', async (t) => {
  const { url, requests, file } = await cloud(t, { 'POST /token': () => lasting })
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const private_key = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const account = {
    type: 'service_account',
    client_email: 'a@p',
    private_key_id: 'k1',
    private_key,
    token_uri: `${url}/token`,
  }
  const env = { GOOGLE_APPLICATION_CREDENTIALS: await file('account.json', account) }
  const clock = new TestClock()
  assert.deepEqual(await gcpToken({ ...parts(t, env), clock }), { value: 'ya29', expiresAt: clock.now() + 3_600_000 })
  const { grant_type: grant, assertion = '' } = fieldsOf(one(requests))
  assert.equal(grant, 'urn:ietf:params:oauth:grant-type:jwt-bearer')
  const [header = '', claims = '', signature = ''] = assertion.split('.')
  assert.ok(createVerify('sha256').update(`${header}.${claims}`).verify(publicKey, signature, 'base64url'))
  assert.deepEqual(JSON.parse(Buffer.from(header, 'base64url').toString()), { alg: 'RS256', typ: 'JWT', kid: 'k1' })
  const iat = clock.now() / 1000
  const scope = 'https://www.googleapis.com/auth/cloud-platform'
  assert.deepEqual(JSON.parse(Buffer.from(claims, 'base64url').toString()), {
    iss: 'a@p',
    scope,
    aud: `${url}/token`,
    iat,
    exp: iat + 3600,
  })
  await file('account.json', { ...account, private_key: 'no key s3cret' })
  await assert.rejects(
    gcpToken(parts(t, env)),
    (error) => error instanceof CloudCredentialError && !String(error).includes('s3cret'),
  )
})

test('Google Cloud: a workload identity is exchanged, and can impersonate an account', async (t) => {
  const expireTime = '2030-01-01T00:00:00Z'
  const { url, requests, file } = await cloud(t, {
    'POST /exchange': () => lasting,
    'POST /account': ({ headers }) =>
      headers.authorization === 'Bearer ya29' ? { accessToken: 'of-account', expireTime } : 401,
  })
  const source = {
    file: await file('subject.json', { id_token: 'subject' }),
    format: { type: 'json', subject_token_field_name: 'id_token' },
  }
  const external = {
    type: 'external_account',
    audience: '//iam.googleapis.com/pool',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    token_url: `${url}/exchange`,
    credential_source: source,
  }
  const env = { GOOGLE_APPLICATION_CREDENTIALS: await file('external.json', external) }
  assert.equal((await gcpToken(parts(t, env))).value, 'ya29')
  const { subject_token: subject, audience } = fieldsOf(one(requests))
  assert.deepEqual([subject, audience], ['subject', external.audience])
  await file('external.json', { ...external, service_account_impersonation_url: `${url}/account` })
  assert.deepEqual(await gcpToken(parts(t, env)), { value: 'of-account', expiresAt: Date.UTC(2030, 0, 1) })
})

test('Google Cloud: the metadata server of the machine, if nothing else is configured', async (t) => {
  // Shows D3.cloudCredentials.gcp.metadataHost and D3.default.computed.cloudCredentials.gcp.metadataHost.
  const path = 'GET /computeMetadata/v1/instance/service-accounts/default/token'
  const { url } = await cloud(t, { [path]: ({ headers }) => (headers['metadata-flavor'] === 'Google' ? lasting : 403) })
  const host = new URL(url).host
  assert.equal((await gcpToken(parts(t, {}, { gcp: { metadataHost: host } }))).value, 'ya29')
  assert.equal((await gcpToken(parts(t, { GCE_METADATA_HOST: host }))).value, 'ya29')
  const seen: unknown[] = []
  const dialer: CloudParts['dialer'] = {
    fetchBytes: async (requests, purpose) => {
      seen.push(new URL(requests).host, purpose)
      throw new Error('unreachable')
    },
  }
  await assert.rejects(gcpToken({ ...parts(t, {}), dialer }), CloudCredentialError)
  assert.deepEqual(seen, ['169.254.169.254', 'metadata'])
})

test('Azure: the secret of an application, or the token of a service account', async (t) => {
  // Shows D3.route.auth.type.azure-entra
  const { url, requests, file } = await cloud(t, { 'POST /tenant/oauth2/v2.0/token': () => lasting })
  const app = { AZURE_TENANT_ID: 'tenant', AZURE_CLIENT_ID: 'client', AZURE_AUTHORITY_HOST: `${url}/` }
  const common = {
    grant_type: 'client_credentials',
    client_id: 'client',
    scope: 'https://cognitiveservices.azure.com/.default',
  }
  assert.equal((await ofModels(parts(t, { ...app, AZURE_CLIENT_SECRET: 'hush' }))).value, 'ya29')
  assert.deepEqual(fieldsOf(one(requests)), { ...common, client_secret: 'hush' })
  const federated = { ...app, AZURE_FEDERATED_TOKEN_FILE: await file('token', 'of-kubernetes\n') }
  assert.equal((await ofModels(parts(t, federated))).value, 'ya29')
  assert.deepEqual(fieldsOf(one(requests)), {
    ...common,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: 'of-kubernetes',
  })
  const refused = { ...app, AZURE_TENANT_ID: 'other', AZURE_CLIENT_SECRET: 'hush' }
  await assert.rejects(ofModels(parts(t, refused)), /^CloudCredentialError: Microsoft Entra answered 404$/)
})

test('Azure: the identity of a machine or of an app, only if configured', async (t) => {
  // Shows D3.cloudCredentials.azure.managedIdentity
  const resource = 'resource=https%3A%2F%2Fcognitiveservices.azure.com'
  const end = Math.floor(systemClock.now() / 1000) + 600
  const { url, requests } = await cloud(t, {
    [`GET /metadata/identity/oauth2/token?api-version=2018-02-01&${resource}`]: ({ headers }) =>
      headers.metadata === 'true' ? { access_token: 'of-machine', expires_in: '3600' } : 400,
    [`GET /msi?api-version=2019-08-01&${resource}`]: ({ headers }) =>
      headers['x-identity-header'] === 'proof' ? { access_token: 'of-app', expires_on: String(end) } : 400,
  })
  const env = { AZURE_POD_IDENTITY_AUTHORITY_HOST: url }
  await assert.rejects(ofModels(parts(t, env)), /cloudCredentials\.azure\.managedIdentity/)
  assert.equal(requests.length, 0)
  const azure = { managedIdentity: true, identityBinding: false }
  assert.equal((await ofModels(parts(t, env, { azure }))).value, 'of-machine')
  const app = await ofModels(parts(t, { IDENTITY_ENDPOINT: `${url}/msi`, IDENTITY_HEADER: 'proof' }, { azure }))
  assert.deepEqual([app.value, Math.round((app.expiresAt ?? 0) / 1000)], ['of-app', end])
})

test('Azure: an identity binding sends the token to the endpoint of the cluster, under its name and CA', async (t) => {
  // Shows D3.cloudCredentials.azure.identityBinding
  const { file } = await cloud(t, {})
  const authority = await createAuthority({ name: 'cluster', now: systemClock.now() })
  const leaf = await authority.issue({ name: 'proxy', dnsNames: ['proxy.cluster'] })
  const requests: CloudRequest[] = []
  const names: unknown[] = []
  const answers = { 'POST /tenant/oauth2/v2.0/token': () => lasting }
  const tls = { cert: leaf.pem, key: String(leaf.privateKey.export({ type: 'pkcs8', format: 'pem' })) }
  const server = createTlsServer(tls, listener(requests, answers))
  server.on('secureConnection', (socket: TLSSocket & { servername?: unknown }) => names.push(socket.servername))
  const port = await listening(server)
  t.after(() => closed(server))
  const env = {
    AZURE_TENANT_ID: 'tenant',
    AZURE_CLIENT_ID: 'client',
    AZURE_FEDERATED_TOKEN_FILE: await file('token', 'of-kubernetes'),
    AZURE_AUTHORITY_HOST: 'https://nobody.invalid',
    AZURE_KUBERNETES_TOKEN_PROXY: `https://127.0.0.1:${port}`,
    AZURE_KUBERNETES_SNI_NAME: 'proxy.cluster',
    AZURE_KUBERNETES_CA_FILE: await file('ca.pem', authority.pem),
  }
  const azure = { managedIdentity: false, identityBinding: true }
  assert.equal((await ofModels(parts(t, env, { azure }))).value, 'ya29')
  assert.equal(fieldsOf(one(requests)).client_assertion, 'of-kubernetes')
  assert.deepEqual(names, ['proxy.cluster'])
  await assert.rejects(
    ofModels(parts(t, { ...env, AZURE_KUBERNETES_SNI_NAME: 'other.cluster' }, { azure })),
    CloudCredentialError,
  )
  await assert.rejects(
    ofModels(parts(t, { ...env, AZURE_KUBERNETES_TOKEN_PROXY: '' }, { azure })),
    /AZURE_KUBERNETES_TOKEN_PROXY/,
  )
})

test('Oracle Cloud: a profile of the config file, or the environment', async (t) => {
  const { file, dir } = await cloud(t, {})
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'hush' }))
  await file('key.pem', pem)
  const config = `[DEFAULT]\nuser=guest\ntenancy=t\n[work]\nuser = u\nfingerprint=aa:bb\nkey_file=~/key.pem\npass_phrase=hush\nregion=eu-frankfurt-1\n`
  const env = { HOME: dir, OCI_CLI_CONFIG_FILE: await file('config', config), OCI_CLI_PROFILE: 'work' }
  const { value } = await ociIdentity(parts(t, env))
  assert.deepEqual([value.keyId, value.tenancy, value.privateKey.asymmetricKeyType], ['t/u/aa:bb', 't', 'rsa'])
  await assert.rejects(ociIdentity(parts(t, { ...env, OCI_CLI_PROFILE: 'gone' })), /has no profile gone/)
  await file('config', config.replace('hush', 'wr0ng-phrase'))
  await assert.rejects(
    ociIdentity(parts(t, env)),
    (error) => error instanceof CloudCredentialError && !String(error).includes('wr0ng'),
  )
})

test('no error repeats text of the service', async (t) => {
  const { url } = await cloud(t, {})
  const errors: unknown[] = []
  const log: Log = { ...silentLog, error: (fields) => void errors.push(fields) }
  const env = { AZURE_TENANT_ID: 't', AZURE_CLIENT_ID: 'c', AZURE_CLIENT_SECRET: 'hush', AZURE_AUTHORITY_HOST: url }
  await assert.rejects(ofModels({ ...parts(t, env), log }), (error) => !/s3cret|hush/.test(String(error)))
  assert.ok(!/s3cret|hush/.test(JSON.stringify(errors)))
})
