import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemIds } from '@plat/core'
import { silentLog } from '@plat/process'
import { type Credential, type Denial, type Identity, isDenial } from '../../call/index.ts'
import { RevokedAccounts } from './revoked-accounts.ts'
import type { Tokens } from './store/account.ts'
import { ada, gone, MINUTE_MS, scriptedVault, silent, tokensOf } from './testing/vault.ts'

const SERVER = 'default/notes'

const CONNECT = 'https://gateway.example/v1/connect/hub'

function authorizationOf(answer: Credential | Denial): string {
  return isDenial(answer) ? answer.reason : String(answer.headers.authorization)
}

test('an account is visible only to its user, realm, tenant, namespace, server and provider', async () => {
  // Shows D3.tokenVault.providers.allowedServers, D3.tokenVault.providers.allowedNamespaces.
  const { vault, owner, clock, provider } = await scriptedVault()
  await vault.connect(owner, tokensOf(clock))
  assert.equal(authorizationOf(await vault.of(SERVER, 'hub', ada)), 'Bearer first')
  assert.equal(vault.missing(SERVER, 'hub', ada), null)
  provider.namespaces = ['default', 'other']
  const refused: [string, string, Identity, RegExp][] = [
    [SERVER, 'hub', { ...ada, user: 'Ada' }, /not connected/],
    [SERVER, 'hub', { ...ada, user: 'bob' }, /not connected/],
    [SERVER, 'hub', { ...ada, user: null }, /acts for no user/],
    [SERVER, 'hub', { ...ada, tenant: 'acme' }, /not connected/],
    [SERVER, 'hub', { ...ada, verified: null }, /it was not verified/],
    [SERVER, 'hub', { ...ada, namespace: 'third' }, /not for agents of this namespace/],
    ['evil/notes', 'hub', ada, /not for this server/],
    [SERVER, 'nub', ada, /has no provider nub/],
    [SERVER, 'hub', { ...ada, issuer: 'https://other.example' }, /users of this issuer may use no connected accounts/],
  ]
  for (const [server, name, identity, why] of refused) {
    assert.match(authorizationOf(await vault.of(server, name, identity)), why)
    assert.match(vault.missing(server, name, identity)?.reason ?? '', why)
  }
  assert.equal(authorizationOf(await vault.of(SERVER, 'hub', { ...ada, namespace: 'other' })), 'Bearer first')
  await vault.connect({ ...owner, tenant: 'acme' }, tokensOf(clock, { accessToken: 'of-acme' }))
  assert.equal(authorizationOf(await vault.of(SERVER, 'hub', { ...ada, tenant: 'acme' })), 'Bearer of-acme')
  assert.equal(vault.missing(SERVER, 'hub', { ...ada, tenant: 'red' })?.data?.connectURL, `${CONNECT}?tenant=red`)
})

test('users of an external issuer find accounts where it is listed, and only those of their issuer with isolateExternalIssuers', async () => {
  // Shows D3.tokenVault.externalUserIssuers, D3.tokenVault.isolateExternalIssuers, D3.tokenVault.userRealm.
  const external = { ...ada, verified: null, issuer: 'https://customer.example' }
  const together = await scriptedVault()
  await together.vault.connect(together.owner, tokensOf(together.clock))
  assert.equal(authorizationOf(await together.vault.of(SERVER, 'hub', external)), 'Bearer first')
  const apart = await scriptedVault({ isolateExternalIssuers: true })
  await apart.vault.connect(apart.owner, tokensOf(apart.clock))
  assert.match(authorizationOf(await apart.vault.of(SERVER, 'hub', external)), /not connected/)
  assert.equal(authorizationOf(await apart.vault.of(SERVER, 'hub', ada)), 'Bearer first')
  await apart.vault.connect(
    { ...apart.owner, realm: external.issuer },
    tokensOf(apart.clock, { accessToken: 'theirs' }),
  )
  assert.equal(authorizationOf(await apart.vault.of(SERVER, 'hub', external)), 'Bearer theirs')
})

test('allowUnverifiedPrincipal admits sessions with an unverified user', async () => {
  // Shows D3.tokenVault.allowUnverifiedPrincipal.
  const { vault, owner, clock } = await scriptedVault({ allowUnverifiedPrincipal: true })
  await vault.connect(owner, tokensOf(clock))
  assert.equal(authorizationOf(await vault.of(SERVER, 'hub', { ...ada, verified: null })), 'Bearer first')
})

test('a token is used until a minute before its end; then concurrent calls share one renewal', async () => {
  const { vault, owner, clock, provider } = await scriptedVault()
  await vault.connect(owner, tokensOf(clock))
  clock.advance(59 * MINUTE_MS - 1)
  assert.equal(authorizationOf(await vault.of(SERVER, 'hub', ada)), 'Bearer first')
  clock.advance(1)
  const answers = await Promise.all(
    Array.from({ length: 20 }, async () => authorizationOf(await vault.of(SERVER, 'hub', ada))),
  )
  assert.deepEqual([...new Set(answers)], ['Bearer renewed-1'])
  assert.equal(provider.renewals, 1)
  assert.ok(!(vault.of(SERVER, 'hub', ada) instanceof Promise), 'a token in hand costs no wait')
})

test('while the provider does not respond the old token is used until it expires, with at most one renewal per second', async () => {
  const { vault, owner, clock, provider } = await scriptedVault()
  await vault.connect(owner, tokensOf(clock))
  provider.answer = silent
  clock.advance(59 * MINUTE_MS)
  for (let count = 0; count < 5; count++)
    assert.equal(authorizationOf(await vault.of(SERVER, 'hub', ada)), 'Bearer first')
  assert.equal(provider.renewals, 1)
  clock.advance(1_000)
  assert.equal(authorizationOf(await vault.of(SERVER, 'hub', ada)), 'Bearer first')
  assert.equal(provider.renewals, 2)
  clock.advance(MINUTE_MS)
  const denial = await vault.of(SERVER, 'hub', ada)
  assert.ok(isDenial(denial) && denial.data === null && denial.retryAfterMs === 1_000, authorizationOf(denial))
  provider.answer = null
  clock.advance(1_000)
  assert.equal(authorizationOf(await vault.of(SERVER, 'hub', ada)), 'Bearer renewed-4')
})

test('a grant that the provider has ended removes the account, and its user is prompted to connect again', async () => {
  const { vault, owner, clock, provider, records } = await scriptedVault()
  await vault.connect(owner, tokensOf(clock))
  provider.answer = gone
  clock.advance(59 * MINUTE_MS)
  const denial = await vault.of(SERVER, 'hub', ada)
  assert.ok(isDenial(denial))
  assert.deepEqual(denial.data, { connectURL: CONNECT, provider: 'hub' })
  assert.equal(vault.account(owner), null)
  assert.deepEqual(provider.revoked, [], 'there is nothing to revoke')
  assert.deepEqual(
    records.map(({ action }) => action),
    ['account.connected', 'account.invalid_grant'],
  )
})

test('a token without a refresh token is used until it expires, one without expiry forever', async () => {
  const { vault, owner, clock } = await scriptedVault()
  await vault.connect(owner, tokensOf(clock, { refreshToken: null }))
  clock.advance(60 * MINUTE_MS - 1)
  assert.equal(authorizationOf(await vault.of(SERVER, 'hub', ada)), 'Bearer first')
  clock.advance(1)
  assert.match(authorizationOf(await vault.of(SERVER, 'hub', ada)), /has expired: open https/)
  await vault.connect(owner, tokensOf(clock, { refreshToken: null, expiresAt: null, accessToken: 'for good' }))
  clock.advance(100_000 * MINUTE_MS)
  assert.equal(authorizationOf(await vault.of(SERVER, 'hub', ada)), 'Bearer for good')
})

test('a token that a server refuses is replaced once it is ten seconds old, and before that its user is prompted', async () => {
  const { vault, owner, clock, provider } = await scriptedVault()
  await vault.connect(owner, tokensOf(clock))
  const first = await vault.of(SERVER, 'hub', ada)
  assert.ok(!isDenial(first))
  clock.advance(9_999)
  assert.match(
    authorizationOf(await vault.renewed(SERVER, 'hub', ada, first)),
    /does not accept your Hub account: open/,
  )
  clock.advance(1)
  assert.equal(authorizationOf(await vault.renewed(SERVER, 'hub', ada, first)), 'Bearer renewed-1')
  assert.equal(
    authorizationOf(await vault.renewed(SERVER, 'hub', ada, first)),
    'Bearer renewed-1',
    'another call has renewed it',
  )
  assert.equal(provider.renewals, 1)
})

test('an account that is reconnected or removed during a renewal is not changed by it', async () => {
  const { vault, owner, clock, provider } = await scriptedVault()
  const renewing = async (meanwhile: () => Promise<unknown>) => {
    const { promise, resolve } = Promise.withResolvers<Tokens>()
    provider.answer = promise
    await vault.connect(owner, tokensOf(clock))
    clock.advance(59 * MINUTE_MS)
    const waiting = vault.of(SERVER, 'hub', ada)
    // The renewal starts after the account was opened.
    while (provider.renewals === 0) await new Promise(setImmediate)
    await meanwhile()
    resolve(tokensOf(clock, { accessToken: 'of the grant before' }))
    provider.renewals = 0
    return authorizationOf(await waiting)
  }
  const again = await renewing(() => vault.connect(owner, tokensOf(clock, { accessToken: 'of the new grant' })))
  assert.equal(again, 'Bearer of the new grant')
  assert.match(await renewing(() => vault.remove(owner, 'disconnected')), /not connected/)
  assert.equal(vault.account(owner), null)
  // Tokens that arrive for a removed account are revoked as well.
  await vault.close()
  assert.deepEqual(provider.revoked, ['first', 'of the grant before'])
})

test('revoking a user removes the accounts in every realm and tenant and revokes their tokens', async () => {
  const { vault, owner, clock, provider, accounts } = await scriptedVault()
  await vault.connect(owner, tokensOf(clock, { accessToken: 'one' }))
  await vault.connect({ ...owner, realm: 'https://customer.example' }, tokensOf(clock, { accessToken: 'two' }))
  await vault.connect({ ...owner, tenant: 'acme' }, tokensOf(clock, { accessToken: 'three' }))
  await vault.connect({ ...owner, user: 'bob' }, tokensOf(clock, { accessToken: 'bob’s' }))
  await vault.connect({ ...owner, user: 'eve' }, tokensOf(clock, { accessToken: 'eve’s' }))
  await vault.connect(
    { ...owner, user: 'eve', realm: 'https://customer.example' },
    tokensOf(clock, { accessToken: 'x' }),
  )
  const removals = new RevokedAccounts({
    ...{ accounts, vault, clock, ids: systemIds(clock), log: silentLog },
    isRevoked: () => true,
  })
  await removals.removeUser('https://customer.example#eve')
  await removals.removeUser('ada')
  await removals.close()
  await vault.close()
  assert.deepEqual(
    accounts.list().map(({ account }) => account.user),
    ['bob', 'eve'],
  )
  assert.deepEqual(provider.revoked.toSorted(), ['one', 'three', 'two', 'x'])
})

test('an account stays if its removal is no longer wanted when the key service has decrypted it', async () => {
  const { vault, owner, clock, provider, records } = await scriptedVault()
  await vault.connect(owner, tokensOf(clock))
  let isRevoked = true
  const removing = vault.remove(owner, 'revoked', { isWanted: () => isRevoked })
  isRevoked = false
  await removing
  await vault.close()
  assert.notEqual(vault.account(owner), null)
  assert.deepEqual(provider.revoked, [])
  assert.equal(records.length, 1, 'only the connection is recorded')
  assert.equal(authorizationOf(await vault.of(SERVER, 'hub', ada)), 'Bearer first')
})
