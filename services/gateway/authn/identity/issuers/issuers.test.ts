import assert from 'node:assert/strict'
import { generateKeyPairSync, hash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { base32 } from '@plat/core'
import { ephemeralSigner, signerOf } from '@plat/keys'
import { testProver } from '@plat/testkit/dpop'
import { tempFolder } from '@plat/testkit/local'
import { signJws } from '@plat/tokens'
import { type Denial, type Identity, isDenial } from '../../../call/index.ts'
import type { TrustedIssuerConfig } from '../config.ts'
import { startAuthenticator } from '../testing/fixture.ts'
import { dnsLabel } from './claims.ts'

const ISSUER = 'https://login.example/realm'
const RESOURCE = 'https://gateway.example/mcp/notes'
const METADATA = `${ISSUER}/.well-known/openid-configuration`
const KEYS = 'https://login.example/keys'

/** A configuration with all defaults. */
const least: TrustedIssuerConfig = {
  issuer: ISSUER,
  namespace: 'partners',
  jwksURL: '',
  caFile: '',
  algorithms: ['RS256', 'ES256', 'EdDSA'],
  jwksRefreshSeconds: 300,
  authorizationServer: '',
  agent: 'external',
  agentClaim: '',
  usernameClaim: '',
  groupsClaim: 'groups',
  scopePrefix: '',
  servers: [],
  stepUpScopes: {},
}

const es256 = () => signerOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, 'test key')

/** A gateway that trusts one identity provider, and that provider. */
async function setUp(t: TestContext, change: Partial<TrustedIssuerConfig> = {}) {
  let signer = es256()
  const metadata = { issuer: ISSUER, jwks_uri: KEYS }
  const jwks = () => ({ keys: [{ ...signer.publicJwk, kid: signer.kid, use: 'sig' }] })
  const fixture = await startAuthenticator(t, {
    config: { resourceBaseURL: 'https://gateway.example', trustedIssuers: [{ ...least, ...change }] },
    documents: { [METADATA]: () => metadata, [KEYS]: jwks, 'https://login.example/pinned': jwks },
  })
  const claims = (more: object = {}) => ({
    iss: ISSUER,
    sub: 'u-1',
    aud: RESOURCE,
    iat: Math.floor(fixture.clock.now() / 1000),
    exp: Math.floor(fixture.clock.now() / 1000) + 300,
    jti: 'j-1',
    scope: 'tools:notes',
    ...more,
  })
  const token = (more: object = {}, header: object = { typ: 'at+jwt' }) => signJws(signer, header, claims(more))
  const ask = (text: string, where?: string) => fixture.answer({ authorization: `Bearer ${text}` }, where)
  const who = async (more: object = {}) => known(await ask(token(more)))
  const rotate = (next = es256()) => {
    signer = next
  }
  return { ...fixture, claims, token, ask, who, rotate }
}

function known(answer: Identity | Denial): Identity {
  if (isDenial(answer)) throw new Error(answer.reason)
  return answer
}

test('an access token of a trusted issuer becomes an identity of its namespace', async (t) => {
  // Shows D3.identity.trustedIssuers, D3.identity.resourceBaseURL, D3.trustedIssuers.issuer, D3.trustedIssuers.namespace,
  // D3.trustedIssuers.agent.
  const { who, trusted } = await setUp(t)
  const identity = await who({ preferred_username: 'ada', groups: ['staff', 'Domain Admins'] })
  const digest = hash('sha256', JSON.stringify([ISSUER, 'u-1', null, '']), 'buffer')
  assert.deepEqual(
    [identity.namespace, identity.agent, identity.session],
    ['partners', 'external', `ext-${base32(digest).slice(0, 26)}`],
  )
  assert.deepEqual([identity.user, identity.groups, identity.issuer], ['ada', ['staff', 'Domain Admins'], ISSUER])
  assert.deepEqual([[...identity.scopes], identity.jti, identity.verified], [['tools:notes'], 'j-1', null])
  assert.equal(trusted(), 2, 'its key and that of the broker')
})

test('a refreshed token stays in its session, and another subject, client or login gets another one', async (t) => {
  const { who } = await setUp(t)
  const first = await who({ jti: 'a', client_id: 'app' })
  assert.equal((await who({ jti: 'b', client_id: 'app', exp: 1e10 })).session, first.session)
  assert.equal((await who({ jti: undefined, azp: 'app' })).session, first.session)
  const others = [
    { client_id: 'other' },
    {},
    { client_id: 'app', sub: 'u-2' },
    { client_id: 'app', sid: 'login' },
    { sid: 'app' },
  ]
  const sessions = await Promise.all(others.map(async (more) => (await who({ jti: 'a', ...more })).session))
  assert.equal(new Set([first.session, ...sessions]).size, others.length + 1)
})

test('tokens of one login share a session, others do not, and a token without jti is named by its signed content', async (t) => {
  const { who, clock } = await setUp(t)
  const first = await who({ sid: 'login', jti: 'a' })
  assert.equal((await who({ sid: 'login', jti: 'b' })).session, first.session)
  assert.notEqual((await who({ sid: 'other', jti: 'a' })).session, first.session)
  assert.notEqual((await who({ sid: 'login', jti: 'a', sub: 'u-2' })).session, first.session)
  const nameless = await who({ jti: undefined })
  assert.match(nameless.jti, /^sha256-[\w-]{43}$/)
  await clock.advance(1000)
  assert.notEqual((await who({ jti: undefined })).jti, nameless.jti)
})

test('a token is for the one server that its audience names', async (t) => {
  // Shows D3.identity.audience.
  const { ask, token, failed } = await setUp(t)
  assert.ok(!isDenial(await ask(token({ aud: ['else', RESOURCE] }))))
  const refused = [
    await ask(token(), '/mcp/other'),
    await ask(token(), '/llm/notes/v1/models'),
    await ask(token({ aud: 'https://gateway.example' })),
    await ask(token({ aud: 'plat-gateway' })),
    await ask(token({ aud: `${RESOURCE}/` })),
  ]
  assert.ok(refused.every(isDenial))
  assert.deepEqual(failed, ['audience', 'audience', 'audience', 'audience', 'audience'])
})

test('a cached token is still checked for the server of each request', async (t) => {
  const { auth, token, ask } = await setUp(t)
  const text = token()
  // It is cached when it comes again.
  await ask(text)
  const first = await ask(text)
  assert.equal(await ask(text), first)
  assert.ok(isDenial(await ask(text, '/mcp/other')))
  auth.clear()
  assert.notEqual(await ask(text), first)
})

test('each invalid token is refused with its reason', async (t) => {
  const { ask, token, claims, failed, clock } = await setUp(t)
  const now = Math.floor(clock.now() / 1000)
  const cases: readonly (readonly [string, string])[] = [
    [token({ exp: now - 31 }), 'expired'],
    [token({ nbf: now + 31 }), 'expired'],
    [token({ exp: undefined }), 'malformed'],
    [token({ sub: undefined }), 'malformed'],
    [token({ groups: 'x'.repeat(3).split('').map(Number) }), 'malformed'],
    [token({ groups: Array.from({ length: 513 }, String) }), 'malformed'],
    [token({ preferred_username: 'a\nb' }), 'malformed'],
    [token({ scope: 5 }), 'malformed'],
    [token({ cnf: { 'x5t#S256': 'A'.repeat(43) } }), 'binding'],
    [token({}, { typ: 'id_token' }), 'typ'],
    [token({}, { typ: 'dpop+jwt' }), 'typ'],
    [signJws(es256(), {}, claims()), 'kid'],
    [signJws(ephemeralSigner('ML-DSA-44'), {}, claims()), 'signature'],
    // The broker's issuer: the issuer named by `iss` must have signed.
    [signJws(ephemeralSigner(), {}, claims({ iss: 'plat-identity' })), 'kid'],
    [token({ iss: 'https://login.example' }), 'signature'],
  ]
  for (const [text, reason] of cases) {
    assert.ok(isDenial(await ask(text)), reason)
    assert.equal(failed.pop(), reason)
  }
})

test('a trusted issuer cannot mint a session of ours', async (t) => {
  const { issuer, ask, rotate, token, failed, clock } = await setUp(t)
  await clock.advance(10_000)
  rotate(issuer.signer)
  assert.ok(isDenial(await ask(token({ ...issuer.claims(), iss: ISSUER }))), 'its audience is the broker’s')
  assert.ok(!isDenial(await ask(issuer.token())), 'tokens of the broker stay accepted')
  assert.deepEqual(failed, ['audience'])
})

test('keys come from discovery, new ones at once and refreshes on time', async (t) => {
  // Shows D3.trustedIssuers.jwksRefreshSeconds.
  const { fetched, clock, rotate, who } = await setUp(t, { jwksRefreshSeconds: 20 })
  const ours = () => fetched.filter(({ url }) => url.startsWith('https://login.example')).map(({ url }) => url)
  assert.deepEqual(ours(), [METADATA, KEYS])
  await clock.advance(10_000)
  rotate()
  await who()
  assert.equal(ours().length, 4, 'fetched for the unknown kid')
  await clock.advance(30_000)
  assert.ok(ours().length > 4, 'fetched again after its refresh time')
})

test('a key document can be named, with the CA that its address is behind', async (t) => {
  // Shows D3.trustedIssuers.jwksURL, D3.trustedIssuers.caFile.
  const dir = tempFolder()
  const caFile = path.join(dir, 'ca.pem')
  await fs.writeFile(caFile, 'the bundle')
  const { fetched, who } = await setUp(t, { jwksURL: 'https://login.example/pinned', caFile })
  assert.equal((await who()).user, 'u-1')
  assert.deepEqual(fetched.slice(-1), [{ url: 'https://login.example/pinned', caPEM: 'the bundle' }])
  await assert.rejects(setUp(t, { caFile: path.join(dir, 'none.pem') }), /none\.pem/)
})

test('metadata of another issuer or without keys gives no keys, and RFC 8414 is requested second', async (t) => {
  for (const [documents, isAccepted] of [
    [{ [METADATA]: () => ({ issuer: 'https://evil.example', jwks_uri: KEYS }) }, false],
    [{ [METADATA]: () => ({ issuer: ISSUER, jwks_uri: 'http://login.example/keys' }) }, false],
    [{ [METADATA]: () => ({ issuer: ISSUER }) }, false],
    [{}, false],
    [
      {
        'https://login.example/.well-known/oauth-authorization-server/realm': () => ({
          issuer: ISSUER,
          jwks_uri: KEYS,
        }),
      },
      true,
    ],
  ] as const) {
    const signer = es256()
    const keys = () => ({ keys: [signer.publicJwk] })
    const { trusted } = await startAuthenticator(t, {
      config: { resourceBaseURL: 'https://gateway.example', trustedIssuers: [least] },
      documents: { ...documents, [KEYS]: keys, 'http://login.example/keys': keys },
    })
    assert.equal(trusted(), isAccepted ? 2 : 1)
  }
})

test('only the algorithms of an issuer are accepted, RS256 among the default ones', async (t) => {
  // Shows D3.trustedIssuers.algorithms.
  const rsa = signerOf(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey, 'test key')
  for (const [algorithms, isAccepted] of [
    [least.algorithms, true],
    [['ES256'], false],
  ] as const) {
    const { rotate, clock, ask, token } = await setUp(t, { algorithms: [...algorithms] })
    await clock.advance(10_000)
    rotate(rsa)
    assert.equal(!isDenial(await ask(token())), isAccepted)
  }
})

test('the leeway is the issuer’s own, else that of the gateway', async (t) => {
  // Shows D3.trustedIssuers.leewaySeconds, D3.identity.leewaySeconds.
  for (const [change, seconds] of [
    [{}, 30],
    [{ leewaySeconds: 5 }, 5],
    [{ leewaySeconds: 0 }, 0],
  ] as const) {
    const { ask, token, clock } = await setUp(t, change)
    const now = Math.floor(clock.now() / 1000)
    assert.ok(isDenial(await ask(token({ exp: now - seconds }))))
    const identity = known(await ask(token({ exp: now - seconds + 1 })))
    assert.equal(identity.expiresAt, (now + 1) * 1000)
  }
})

test('the agent’s name comes from a claim where one is configured, as a DNS label', async (t) => {
  // Shows D3.trustedIssuers.agentClaim.
  const { who } = await setUp(t, { agentClaim: 'client.name' })
  assert.equal((await who({ client: { name: 'My Agent/2.' } })).agent, 'my-agent-2')
  assert.equal((await who({ 'client.name': 'whole' })).agent, 'whole')
  await assert.rejects(who({}), /claim "client\.name" is missing/)
  await assert.rejects(who({ 'client.name': '…' }), /gives no agent name/)
  assert.equal(dnsLabel(`${'a'.repeat(62)}-b`), 'a'.repeat(62))
})

test('the user is the first usual claim, or the configured one alone', async (t) => {
  // Shows D3.trustedIssuers.usernameClaim.
  const { who } = await setUp(t)
  const email = 'ada@example'
  assert.equal((await who({ preferred_username: 'ada', email })).user, 'ada')
  assert.equal((await who({ email })).user, email)
  assert.equal((await who({ email, email_verified: false })).user, 'u-1', 'an unverified address names no user')
  assert.equal((await who()).user, 'u-1')
  const chosen = await setUp(t, { usernameClaim: 'upn' })
  assert.equal((await chosen.who({ upn: 'eve', preferred_username: 'ada' })).user, 'eve')
  await assert.rejects(chosen.who({ preferred_username: 'ada' }), /claim "upn" is missing/)
  const addressed = await setUp(t, { usernameClaim: 'email' })
  assert.equal((await addressed.who({ email, email_verified: true })).user, email)
  await assert.rejects(addressed.who({ email, email_verified: false }), /claim "email" is not verified/)
})

test('groups come from the configured claim, also from inside another', async (t) => {
  // Shows D3.trustedIssuers.groupsClaim.
  const { who } = await setUp(t, { groupsClaim: 'realm_access.roles' })
  assert.deepEqual((await who({ realm_access: { roles: ['a', 'b'] }, groups: ['c'] })).groups, ['a', 'b'])
  assert.deepEqual((await who({ realm_access: { roles: 'one' } })).groups, ['one'])
  assert.deepEqual((await who({ realm_access: null })).groups, [])
})

test('scopes lose their prefix, and those without it are ignored', async (t) => {
  // Shows D3.trustedIssuers.scopePrefix.
  const { who } = await setUp(t, { scopePrefix: 'plat/' })
  assert.deepEqual([...(await who({ scope: 'openid plat/tools:notes tools:other plat/' })).scopes], ['tools:notes'])
  assert.deepEqual([...(await who({ scope: undefined, scp: ['plat/tools:notes'] })).scopes], ['tools:notes'])
})

test('tokens of an issuer are accepted only at its servers', async (t) => {
  // Shows D3.trustedIssuers.servers.
  const { ask, token, failed } = await setUp(t, { servers: ['web-*', 'mail'] })
  assert.ok(isDenial(await ask(token())))
  assert.deepEqual(failed, ['issuer'])
  assert.ok(!isDenial(await ask(token({ aud: 'https://gateway.example/mcp/web-search' }), '/mcp/web-search')))
})

test('tool calls may need additional scopes, and a challenge names all of them as the issuer writes them', async (t) => {
  // Shows D3.trustedIssuers.stepUpScopes.
  const stepUpScopes = {
    'notes/delete_*': ['notes:delete', 'notes:write'],
    'notes/*': ['notes:write'],
    'web/*': ['web:use'],
  }
  const { who, auth, issuer, answer } = await setUp(t, { scopePrefix: 'p/', stepUpScopes })
  const plain = await who({ scope: 'p/tools:notes' })
  const { missing } = auth.scopes
  assert.equal(missing(plain, 'notes', null), null, 'a list needs none')
  assert.equal(missing(plain, 'notes', 'add'), 'p/tools:notes p/notes:write')
  assert.equal(missing(plain, 'notes', 'delete_all'), 'p/tools:notes p/notes:delete p/notes:write')
  const full = await who({ scope: 'p/tools:notes p/notes:delete p/notes:write' })
  assert.equal(missing(full, 'notes', 'delete_all'), null)
  assert.equal(missing(full, 'web', null), 'p/tools:web')
  const session = known(await answer({ authorization: `Bearer ${issuer.token()}` }))
  assert.equal(missing(session, 'notes', 'delete_all'), null, 'sessions of the broker have other means')
  assert.equal(missing(session, 'web', null), 'tools:web')
})

test('the challenge of a request without a token names metadata and scope', async (t) => {
  const { answer } = await setUp(t, { scopePrefix: 'p/' })
  const denial = await answer({})
  assert.ok(isDenial(denial))
  assert.equal(
    denial.data?.challenge,
    'Bearer realm="plat", scope="p/tools:notes", resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/mcp/notes"',
  )
})

test('an access token that is bound to a key needs proofs like any other', async (t) => {
  const { token, answer, clock } = await setUp(t)
  const prover = testProver({ clock })
  const text = token({ cnf: { jkt: prover.jkt } })
  assert.ok(isDenial(await answer({ authorization: `Bearer ${text}` })))
  const dpop = prover.proof(RESOURCE, text)
  assert.equal(known(await answer({ authorization: `DPoP ${text}`, dpop })).jkt, prover.jkt)
})
