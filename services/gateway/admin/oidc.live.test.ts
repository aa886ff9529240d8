import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createAuthority } from '@plat/testkit/authority'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { AUDIENCE, es256, type Provider, provider, rs256 } from '../testing/people.ts'
import { started, TOKEN } from '../testing/started.ts'

/** Signers may be remote, so a token may have to be waited for. */
type Token = string | Promise<string>

const ROLES = {
  viewer: ['watchers'],
  approver: ['deciders'],
  killswitch: ['user:kim'],
  admin: ['operators'],
}

/** Starts a gateway whose admin API accepts tokens of the provider; returns a function that requests a path and returns the status. */
async function administered(
  t: TestContext,
  { state }: Provider,
  more: { readonly mode?: string; readonly oidc?: object; readonly own?: object } = {},
) {
  const oidc = { issuer: state.issuer, audience: AUDIENCE, ...more.oidc }
  const { gateway } = await started(t, { adminAuth: { mode: more.mode ?? 'oidc', roles: ROLES, oidc }, ...more.own })
  const ask = async (token: Token, method: string, path: string, body?: object) =>
    fetch(gateway.adminUrl + path, {
      method,
      headers: { authorization: `Bearer ${await token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  return { gateway, ask, sees: async (token: Token) => (await ask(token, 'GET', '/v1/approvals')).status }
}

test('in mode oidc people act by their roles: of their groups, or their own', async (t) => {
  // Shows D3.adminAuth.mode.oidc, D3.adminAuth.roles, D3.adminAuth.role.viewer, D3.adminAuth.role.approver and
  // D3.adminAuth.role.admin.
  const people = await provider(t)
  const { ask } = await administered(t, people)
  const acts = async (claims: object) => {
    const token = people.token(claims)
    const revocation = { target: { agent: 'default/nobody' } }
    return [
      (await ask(token, 'GET', '/v1/approvals')).status,
      (await ask(token, 'POST', '/v1/approvals/none/approve', {})).status,
      (await ask(token, 'POST', '/v1/revocations', revocation)).status,
      (await ask(token, 'POST', '/v1/pins/default/notes/accept', {})).status,
    ]
  }
  assert.deepEqual(await acts({ groups: ['watchers'] }), [200, 403, 403, 403])
  assert.deepEqual(await acts({ groups: ['others', 'deciders'] }), [200, 404, 403, 403])
  assert.deepEqual(await acts({ groups: ['operators'] }), [200, 404, 201, 404])
  assert.deepEqual(await acts({ preferred_username: 'kim' }), [200, 403, 201, 403])
  assert.deepEqual(await acts({ groups: ['others'] }), [403, 403, 403, 403])
  // A provider with user-defined group names must not grant the roles of a user.
  assert.deepEqual(await acts({ groups: ['user:kim'] }), [403, 403, 403, 403])
  assert.equal((await ask(TOKEN, 'GET', '/v1/approvals')).status, 401, 'the static token counts for nothing')
})

test('with mode both the static token still works as break-glass, and votes and records name the person', async (t) => {
  // Shows D3.adminAuth.mode.both.
  const people = await provider(t)
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const { ask, sees } = await administered(t, people, { mode: 'both', own: { auditPath } })
  assert.equal(await sees(TOKEN), 200)
  assert.equal(await sees(people.token({ groups: ['watchers'] })), 200)
  assert.equal(await sees(`${TOKEN}x`), 401)
  assert.equal(await sees(people.token({ preferred_username: 'token:admin' })), 403)
  const kim = people.token({ preferred_username: 'kim' })
  assert.equal((await ask(kim, 'POST', '/v1/revocations', { target: { agent: 'default/nobody' } })).status, 201)
  const record = async () =>
    wholeLines(auditPath)
      .map((line) => JSON.parse(line).rec)
      .find(({ kind }) => kind === 'admin')
  await until(async () => (await record()) !== undefined, 'the record')
  assert.equal((await record()).by, 'user:kim')
})

test('only tokens of the issuer, for the audience, in time and by an accepted algorithm are taken', async (t) => {
  // Shows D3.adminAuth.oidc.issuer, D3.adminAuth.oidc.audience, D3.adminAuth.oidc.algorithms and
  // D3.adminAuth.oidc.leewaySeconds.
  const people = await provider(t)
  const { sees } = await administered(t, people, { oidc: { leewaySeconds: 100 } })
  const groups = ['watchers']
  assert.equal(await sees(people.token({ groups })), 200)
  assert.equal(await sees(people.token({ groups, aud: ['else', AUDIENCE] })), 200)
  assert.equal(await sees(people.token({ groups, exp: people.now() - 60 })), 200, 'within the leeway')
  const refused = {
    issuer: people.token({ groups, iss: 'http://other.example' }),
    audience: people.token({ groups, aud: 'else' }),
    expired: people.token({ groups, exp: people.now() - 160 }),
    'not yet valid': people.token({ groups, nbf: people.now() + 160 }),
    'another key': people.token({ groups }, es256()),
    'bound to a key': people.token({ groups, cnf: { jkt: 'x'.repeat(43) } }),
    'no token': 'nonsense',
  }
  for (const [why, token] of Object.entries(refused)) assert.equal(await sees(token), 401, why)

  people.state.signer = rs256()
  const narrow = await administered(t, people, { oidc: { algorithms: ['ES256'] } })
  assert.equal(await narrow.sees(people.token({ groups })), 401, 'RS256 is not accepted here')
  const wide = await administered(t, people)
  assert.equal(await wide.sees(people.token({ groups })), 200)
})

test('names and groups are read from the configured claims, dotted paths included', async (t) => {
  // Shows D3.adminAuth.oidc.usernameClaim, D3.adminAuth.oidc.groupsClaim and D3.default.computed.adminAuth.oidc.usernameClaim.
  const people = await provider(t)
  const oidc = { usernameClaim: 'login', groupsClaim: 'realm_access.roles' }
  const { sees } = await administered(t, people, { oidc })
  assert.equal(await sees(people.token({ login: 'x', groups: ['watchers'] })), 403)
  assert.equal(await sees(people.token({ login: 'x', realm_access: { roles: ['watchers'] } })), 200)
  assert.equal(await sees(people.token({ login: 'kim' })), 200)
  assert.equal(await sees(people.token({ preferred_username: 'kim' })), 401, 'the claim is missing')
  const usual = await administered(t, people)
  assert.equal(await usual.sees(people.token({ preferred_username: undefined, email: 'kim' })), 200)
  assert.equal(await usual.sees(people.token({ preferred_username: undefined, sub: 'kim' })), 200)
})

test('keys come from jwksURL, or else by discovery', async (t) => {
  // Shows D3.adminAuth.oidc.jwksURL.
  const people = await provider(t)
  const { sees } = await administered(t, people, {
    oidc: { jwksURL: `${people.state.issuer}/pinned` },
  })
  assert.equal(await sees(people.token({ groups: ['watchers'] })), 200)
  assert.ok(people.requests.length > 0 && people.requests.every((path) => path === '/pinned'))
  const found = await administered(t, people)
  assert.equal(await found.sees(people.token({ groups: ['watchers'] })), 200)
  assert.deepEqual(people.requests.filter((path) => path !== '/pinned').slice(0, 2), [
    '/.well-known/openid-configuration',
    '/keys',
  ])
})

test('an issuer with a private certificate authority is trusted only with caFile', async (t) => {
  // Shows D3.adminAuth.oidc.caFile.
  const dir = tempFolder()
  const authority = await createAuthority({ name: 'test authority', ca: true, now: Date.now() })
  const leaf = await authority.issue({ name: 'localhost', dnsNames: ['localhost'] })
  const key = String(leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const people = await provider(t, { key, cert: leaf.pem })
  await writeFile(join(dir, 'ca.pem'), authority.pem)
  const trusted = await administered(t, people, { oidc: { caFile: join(dir, 'ca.pem') } })
  assert.equal(await trusted.sees(people.token({ groups: ['watchers'] })), 200)
  const untrusted = await administered(t, people)
  assert.equal(await untrusted.sees(people.token({ groups: ['watchers'] })), 401)
})

test('a console learns without a token where to log in, and nothing else', async (t) => {
  // Shows D3.endpoint.auth.config, D3.adminAuth.oidc.clientID and D3.adminAuth.oidc.scopes.
  const people = await provider(t)
  const { gateway } = await administered(t, people, { oidc: { clientID: 'console', scopes: ['openid', 'groups'] } })
  const config = async (url: string) => (await fetch(`${url}/v1/auth/config`)).json()
  assert.deepEqual(await config(gateway.adminUrl), {
    mode: 'oidc',
    issuer: people.state.issuer,
    audience: AUDIENCE,
    clientID: 'console',
    scopes: ['openid', 'groups'],
  })
  const plain = await started(t, {})
  assert.deepEqual(await config(plain.gateway.adminUrl), { mode: 'token' })
})
