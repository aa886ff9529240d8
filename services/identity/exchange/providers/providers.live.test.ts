import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { rfc3339 } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { claimsIn, jsonFile, startTestBroker, text } from '../../testing/broker.ts'
import { type CloudCall, type CloudReply, startTestCloud } from '../../testing/cloud.ts'
import { newKeyPem } from '../../testing/keys.ts'
import { askThroughPauses, askUntilTimeout, RecordingClock } from '../../testing/recording-clock.ts'
import { cloudProviders } from './clouds.ts'

const ISSUER = 'https://id.example'
const AGENT = 'spiffe://plat.local/ns/default/agent/assistant'
const POOL = '//iam.googleapis.com/projects/7/locations/global/workloadIdentityPools/pool/providers/plat'
const ROLE = 'arn:aws:iam::123456789012:role/reports'
const ACCOUNT = 'reader@project.iam.gserviceaccount.com'

/** A cloud under test. */
interface Cloud {
  readonly provider: string
  /** `params` for a cloud at `url`. */
  params(url: string): Readonly<Record<string, string>>
  /** Its response with a credential until `endsAt` (Unix milliseconds). */
  good(call: CloudCall, endsAt: number): CloudReply
  /** A refusal with a cloud-specific code, and the form of the code in the log. */
  readonly refusal: { readonly body: string; readonly code: string }
  /** Bodies with status 200 that are not a credential. */
  readonly garbage: readonly (string | Uint8Array)[]
  readonly audience: string
  /** Field of the assertion in its request. */
  readonly field: string
  /** Body after which the request is retried. */
  readonly passing: string | null
}

const AWS_KEYS = { AccessKeyId: 'ASIA1', SecretAccessKey: 'se/cret+', SessionToken: 'FwoG==' }

function stsAnswer(members: Readonly<Record<string, string>>): string {
  const inside = Object.entries(members).map(([name, value]) => `<${name}>${value}</${name}>`)
  return (
    '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">\n' +
    '<AssumeRoleWithWebIdentityResult><SubjectFromWebIdentityToken>a&lt;b</SubjectFromWebIdentityToken>' +
    `<Credentials>${inside.join('\n')}</Credentials></AssumeRoleWithWebIdentityResult>` +
    '<ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></AssumeRoleWithWebIdentityResponse>\n'
  )
}

function stsError(code: string): string {
  return `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>hush</Message></Error></ErrorResponse>`
}

const ENDS = '2999-01-01T00:00:00Z'
const bearer = (members: object = {}) =>
  JSON.stringify({ access_token: 'cloud-token', token_type: 'Bearer', expires_in: 3000, ...members })
/** The text with a byte in it that no UTF-8 has. */
const notUtf8 = (text: string) => Buffer.from(text.replace('\n', '\xff'), 'latin1')

const NO_BEARERS = [
  '',
  notUtf8('{"access_token":"a","token_type":"Bearer","expires_in":1,"scope":"x\n"}'),
  'null',
  '[]',
  '{',
  `${bearer()}{}`,
  '{"access_token":"a","access_token":"b","token_type":"Bearer","expires_in":1}',
  bearer({ access_token: '' }),
  bearer({ access_token: 'two words' }),
  bearer({ access_token: undefined }),
  bearer({ token_type: 'mac' }),
  ...[undefined, '3000', 0, -1, 1.5, 1e300].map((expires_in) => bearer({ expires_in })),
]

const aws: Cloud = {
  provider: 'aws-sts',
  params: (url) => ({ roleArn: ROLE, region: 'eu-central-1', endpoint: url }),
  good: (_call, endsAt) => ({ status: 200, body: stsAnswer({ ...AWS_KEYS, Expiration: rfc3339(endsAt) }) }),
  refusal: { body: stsError('InvalidIdentityToken'), code: 'InvalidIdentityToken' },
  garbage: [
    '',
    '{}',
    notUtf8(stsAnswer({ ...AWS_KEYS, Expiration: ENDS })),
    stsAnswer(AWS_KEYS),
    stsAnswer({ ...AWS_KEYS, Expiration: '2001-01-01T00:00:00Z' }),
    stsAnswer({ ...AWS_KEYS, Expiration: '32472144000' }),
    stsAnswer({ ...AWS_KEYS, SessionToken: '', Expiration: ENDS }),
    stsAnswer({ ...AWS_KEYS, SessionToken: 'a&amp;b', Expiration: ENDS }),
    stsAnswer({ ...AWS_KEYS, SessionToken: '<b>x</b>', Expiration: ENDS }),
    stsAnswer({ ...AWS_KEYS, Expiration: ENDS }).replace(/<Credentials>.*<.Credentials>/s, '<!-- $& -->'),
    stsAnswer({ ...AWS_KEYS, Expiration: ENDS }).replace(
      '</Credentials>',
      '<SessionToken>b</SessionToken></Credentials>',
    ),
    stsAnswer({ ...AWS_KEYS, Expiration: ENDS }).replaceAll('AssumeRoleWithWebIdentityRes', 'AssumeRoleRes'),
  ],
  audience: 'sts.amazonaws.com',
  field: 'WebIdentityToken',
  passing: stsError('IDPCommunicationError'),
}

const gcp: Cloud = {
  provider: 'gcp-sts',
  params: (url) => ({ workloadIdentityProvider: POOL, endpoint: url }),
  good: () => ({ status: 200, body: bearer({ issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' }) }),
  refusal: { body: '{"error":"invalid_grant","error_description":"hush"}', code: 'invalid_grant' },
  garbage: NO_BEARERS,
  audience: POOL,
  field: 'subject_token',
  passing: null,
}

const gcpAccount: Cloud = {
  ...gcp,
  params: (url) => ({ ...gcp.params(url), serviceAccount: ACCOUNT, credentialsEndpoint: `${url}/` }),
  good: (call, endsAt) =>
    call.path === '/v1/token'
      ? gcp.good(call, endsAt)
      : { status: 200, body: JSON.stringify({ accessToken: 'cloud-token', expireTime: rfc3339(endsAt) }) },
}

const azure: Cloud = {
  provider: 'azure-entra',
  params: (url) => ({
    tenant: 'contoso.example',
    clientId: 'app-1',
    scope: 'https://storage.azure.com/.default',
    endpoint: url,
  }),
  good: () => ({ status: 200, body: bearer({ ext_expires_in: 3000 }) }),
  refusal: {
    body: '{"error":"invalid_client","error_description":"AADSTS700016: hush","error_codes":[700016]}',
    code: 'AADSTS700016',
  },
  garbage: NO_BEARERS,
  audience: 'api://AzureADTokenExchange',
  field: 'client_assertion',
  passing: '{"error":"invalid_request","error_description":"hush","error_codes":[70021]}',
}

const CLOUDS: Readonly<Record<string, Cloud>> = { aws, gcp, 'gcp with a service account': gcpAccount, azure }

/** A broker with one audience for a cloud of ours. The providers' clock is their own: pauses and deadlines end at once. */
async function setUp(
  t: TestContext,
  cloud: Cloud,
  reply: (call: CloudCall, nth: number) => CloudReply | Promise<CloudReply>,
  more: Readonly<Record<string, string>> = {},
) {
  const clock = new RecordingClock()
  const { url, calls } = await startTestCloud(t, reply)
  const federationKey = path.join(tempFolder(), 'federation.pem')
  await fs.writeFile(federationKey, newKeyPem('ES256'))
  const dialer = createDialer({ clock, log: silentLog })
  t.after(() => dialer.close())
  const rule = { maxTTLSeconds: 120, allowedScopes: ['tools:a'], allowedNamespaces: ['default'] }
  const audience = { ...rule, provider: cloud.provider, params: { ...cloud.params(url), ...more } }
  const broker = await startTestBroker(t, {
    federationKey,
    federationIssuer: ISSUER,
    exchangeConfig: await jsonFile({ audiences: { cloud: audience } }),
    providers: (federation) => (federation === null ? [] : cloudProviders({ federation, dialer, clock })),
  })
  const { token: subject_token, jti } = await broker.mint({
    user: 'ada',
    scopes: ['tools:a', 'tools:b'],
    tier: 'tier-1',
  })
  const ask = () => broker.exchange({ subject_token, audience: 'cloud' })
  return { ...broker, ask, calls, cloudClock: clock, parent: jti, url }
}

type ProviderFixture = Awaited<ReturnType<typeof setUp>>

async function assertFailed(
  fixture: ProviderFixture,
  answer: Awaited<ReturnType<ProviderFixture['ask']>>,
  why: RegExp,
): Promise<void> {
  assert.deepEqual([answer.status, answer.body.error], [502, 'server_error'], JSON.stringify(answer.body))
  const line = fixture.lines.findLast((each) => each.includes('no credential')) ?? ''
  assert.match(line, why)
  const stated = JSON.stringify(answer.body) + fixture.lines.join('')
  assert.ok(!/hush|cloud-token|se\/cret/.test(stated), 'the body of the cloud is nowhere')
  for (const { body } of fixture.calls) {
    const sent = /eyJ[\w-]+\.[\w-]+\.[\w-]+/.exec(body)?.[0]
    assert.ok(sent === undefined || !stated.includes(sent), 'the assertion is nowhere')
  }
}

for (const [name, cloud] of Object.entries(CLOUDS)) {
  test(`${name}: a session becomes a credential, by an assertion that the published key verifies`, async (t) => {
    // Shows D1.exchangeConfig.provider.aws-sts, D1.exchangeConfig.provider.gcp-sts,
    // D1.exchangeConfig.provider.azure-entra, D1.exchangeConfig.params.roleArn, D1.exchange.rule.providerCredential.
    const fixture = await setUp(t, cloud, (call) => cloud.good(call, fixture.cloudClock.now() + 3_000_900))
    const { status, body } = await fixture.ask()
    assert.equal(status, 200, fixture.lines.join('\n'))
    const { access_token, ...rest } = body
    assert.deepEqual(rest, {
      issued_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_type: 'Bearer',
      expires_in: 3000,
      scope: 'tools:a',
    })
    const first = fixture.calls[0]
    const sent = new URLSearchParams(first?.body).get(cloud.field) ?? ''
    const keys = createRemoteJWKSet(new URL(`${fixture.identity.url}/.well-known/federation/jwks.json`))
    const currentDate = new Date(fixture.cloudClock.now())
    const { payload, protectedHeader } = await jwtVerify(sent, keys, {
      issuer: ISSUER,
      audience: cloud.audience,
      currentDate,
    })
    const { jti, ...claims } = payload
    const now = fixture.cloudClock.now() / 1000
    assert.equal(protectedHeader.alg, 'ES256')
    assert.deepEqual(claims, {
      iss: ISSUER,
      sub: AGENT,
      aud: cloud.audience,
      iat: now,
      nbf: now,
      exp: now + 120,
      plat_ns: 'default',
      plat_agent: 'assistant',
      plat_session: 's1',
      plat_tier: 'tier-1',
      scope: 'tools:a',
    })
    const record = fixture.lines.find((line) => line.includes('"event":"exchange"')) ?? ''
    assert.ok(record.includes(`"jti":"${jti}"`) && record.includes(fixture.parent), 'the record names the assertion')
    assert.ok(!fixture.lines.join('').includes(text(access_token)))
    assert.equal(first?.headers.authorization, undefined)
  })

  test(`${name}: the assertion is not a session token`, async (t) => {
    const fixture = await setUp(t, cloud, (call) => cloud.good(call, fixture.cloudClock.now() + 3_000_000))
    await fixture.ask()
    const sent = new URLSearchParams(fixture.calls[0]?.body).get(cloud.field) ?? ''
    assert.equal((await fixture.verify(sent, cloud.audience)).valid, false)
    const { status, body } = await fixture.exchange({ subject_token: sent, audience: 'cloud' })
    assert.deepEqual([status, body.error], [400, 'invalid_grant'])
  })

  test(`${name}: with params.subject session the assertion is about the session; params.audience is its audience`, async (t) => {
    const more = { subject: 'session', audience: 'api://elsewhere' }
    const fixture = await setUp(t, cloud, (call) => cloud.good(call, fixture.cloudClock.now() + 3_000_000), more)
    assert.equal((await fixture.ask()).status, 200)
    const { sub, aud } = claimsIn(new URLSearchParams(fixture.calls[0]?.body).get(cloud.field))
    assert.deepEqual([sub, aud], [`${AGENT}/session/s1`, 'api://elsewhere'])
  })

  test(`${name}: a refusal is logged with status and code, without body or assertion`, async (t) => {
    const { body, code } = cloud.refusal
    const fixture = await setUp(t, cloud, () => ({ status: 400, body }))
    await assertFailed(fixture, await fixture.ask(), new RegExp(`"reason":"status 400, ${code}"`))
    assert.equal(fixture.calls.length, 1)
  })

  test(`${name}: a failure of the cloud is logged with its status`, async (t) => {
    const fixture = await setUp(t, cloud, () => ({ status: 503, body: '<html>hush</html>' }))
    await assertFailed(fixture, await fixture.ask(), /"reason":"status 503"/)
  })

  test(`${name}: a code that is none does not reach the log`, async (t) => {
    const odd = cloud.refusal.body.replace(cloud.refusal.code.replace('AADSTS', ''), '"hush me"')
    const fixture = await setUp(t, cloud, () => ({ status: 400, body: odd }))
    await assertFailed(fixture, await fixture.ask(), /"reason":"status 400(, invalid_client)?"/)
  })

  test(`${name}: no answer within 5 s, or half of one, is a failure`, async (t) => {
    for (const reply of ['never', 'stalls'] as const) {
      const fixture = await setUp(t, cloud, () => reply)
      await assertFailed(fixture, await askUntilTimeout(fixture), /"reason":"not reached: timeout"/)
    }
  })

  test(`${name}: a status 200 that is not a credential is a failure`, async (t) => {
    let body: string | Uint8Array = ''
    const fixture = await setUp(t, cloud, () => ({ status: 200, body }))
    for (const each of cloud.garbage) {
      body = each
      await assertFailed(fixture, await fixture.ask(), /"reason":"status 200, but /)
    }
  })

  test(`${name}: an answer of more than 64 KiB is a failure`, async (t) => {
    const fixture = await setUp(t, cloud, () => ({ status: 200, body: `${bearer()}${' '.repeat(65_536)}` }))
    await assertFailed(fixture, await fixture.ask(), /"reason":"not reached: too_large"/)
  })

  test(`${name}: a redirect is not followed`, async (t) => {
    const fixture = await setUp(t, cloud, () => ({ status: 307, body: '', location: `${fixture.url}/elsewhere` }))
    await assertFailed(fixture, await fixture.ask(), /"reason":"status 307"/)
    assert.equal(fixture.calls.length, 1)
  })

  if (cloud.passing === null) continue
  const passing = cloud.passing
  test(`${name}: a temporary failure is retried, three attempts at most`, async (t) => {
    let failures = 2
    const fixture = await setUp(t, cloud, (call) =>
      failures-- > 0 ? { status: 400, body: passing } : cloud.good(call, fixture.cloudClock.now() + 3_000_000),
    )
    assert.equal((await askThroughPauses(fixture)).status, 200)
    assert.equal(fixture.calls.length, 3)
    failures = 100
    await assertFailed(fixture, await askThroughPauses(fixture), /"reason":"status 400, /)
    assert.equal(fixture.calls.length, 6)
  })
}

test('the request to STS for a role is as documented, for no less than 900 s', async (t) => {
  const fixture = await setUp(t, aws, (call) => aws.good(call, fixture.cloudClock.now() + 900_000))
  const { body } = await fixture.ask()
  const expiration = rfc3339(fixture.cloudClock.now() + 900_000)
  assert.equal(body.expires_in, 900)
  assert.deepEqual(JSON.parse(text(body.access_token)), { Version: 1, ...AWS_KEYS, Expiration: expiration })
  const [{ method, path: where, headers, body: sent } = assert.fail()] = fixture.calls
  assert.deepEqual([method, where, headers['content-type']], ['POST', '/', 'application/x-www-form-urlencoded'])
  const { WebIdentityToken, ...fields } = Object.fromEntries(new URLSearchParams(sent))
  const { jti } = claimsIn(WebIdentityToken)
  assert.deepEqual(fields, {
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: ROLE,
    RoleSessionName: `assistant.${jti}`,
    DurationSeconds: '900',
  })
})

test('the request to Google is for a federated token, and with it for the token of the service account', async (t) => {
  const fixture = await setUp(t, gcpAccount, (call) => gcpAccount.good(call, fixture.cloudClock.now() + 120_000), {
    scope: 'https://www.googleapis.com/auth/devstorage.read_only',
  })
  const { body } = await fixture.ask()
  assert.deepEqual([body.access_token, body.expires_in], ['cloud-token', 120])
  const [first, second] = fixture.calls
  const { subject_token, ...fields } = Object.fromEntries(new URLSearchParams(first?.body))
  assert.equal(first?.path, '/v1/token')
  assert.deepEqual(fields, {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    audience: POOL,
    scope: 'https://www.googleapis.com/auth/cloud-platform',
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  })
  assert.equal(second?.path, `/v1/projects/-/serviceAccounts/${encodeURIComponent(ACCOUNT)}:generateAccessToken`)
  assert.equal(second?.headers.authorization, 'Bearer cloud-token')
  assert.deepEqual(JSON.parse(second?.body ?? ''), {
    scope: ['https://www.googleapis.com/auth/devstorage.read_only'],
    lifetime: '120s',
  })
})

test("a service account without permission is logged with Google's status", async (t) => {
  const refusal = JSON.stringify({ error: { code: 403, message: 'hush', status: 'PERMISSION_DENIED' } })
  const fixture = await setUp(t, gcpAccount, (call) =>
    call.path === '/v1/token' ? gcp.good(call, 0) : { status: 403, body: refusal },
  )
  await assertFailed(fixture, await fixture.ask(), /"reason":"status 403, PERMISSION_DENIED"/)
})

test("a service account's token without a token or an end is a failure", async (t) => {
  const good = { accessToken: 'cloud-token', expireTime: ENDS }
  let answer: object = good
  const fixture = await setUp(t, gcpAccount, (call) =>
    call.path === '/v1/token' ? gcp.good(call, 0) : { status: 200, body: JSON.stringify(answer) },
  )
  assert.equal((await fixture.ask()).status, 200)
  for (const wrong of [{ accessToken: 1 }, { expireTime: 'soon' }, { expireTime: '2001-01-01T00:00:00Z' }]) {
    answer = { ...good, ...wrong }
    await assertFailed(fixture, await fixture.ask(), /"reason":"status 200, but /)
  }
})

test('the request to Entra is by a client with an assertion', async (t) => {
  const fixture = await setUp(t, azure, (call) => azure.good(call, 0))
  await fixture.ask()
  const [{ path: where, body } = assert.fail()] = fixture.calls
  assert.equal(where, '/contoso.example/oauth2/v2.0/token')
  const { client_assertion, ...fields } = Object.fromEntries(new URLSearchParams(body))
  assert.deepEqual(fields, {
    grant_type: 'client_credentials',
    client_id: 'app-1',
    scope: 'https://storage.azure.com/.default',
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  })
})
