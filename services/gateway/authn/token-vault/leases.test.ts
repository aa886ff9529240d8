import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Leases, StateUnreachableError } from '@plat/state'
import { until } from '@plat/testkit/until'
import { isDenial } from '../../call/index.ts'
import { ada, MINUTE_MS, scriptedVault, tokensOf } from './testing/vault.ts'

const SERVER = 'default/notes'

/** The access token of a result, or the code of its denial. */
function tokenOf(result: Awaited<ReturnType<Awaited<ReturnType<typeof scriptedVault>>['vault']['of']>>): string {
  return isDenial(result) ? result.code : String(result.headers.authorization).replace('Bearer ', '')
}

test('while another replica renews a token it is used until it expires, and then calls wait for the new one', async () => {
  const { vault, accounts, clock, leases, provider, owner } = await scriptedVault()
  await vault.connect(owner, tokensOf(clock))
  const account = vault.account(owner) ?? assert.fail('there is no account')
  const lease = await leases.acquire(`account/${account.id}`, 120 * MINUTE_MS)
  assert.ok(lease !== null)
  const of = async () => tokenOf(await vault.of(SERVER, 'hub', ada))
  await clock.advance(59.5 * MINUTE_MS)
  assert.equal(await of(), 'first')
  await clock.advance(MINUTE_MS)
  const waiting = of()
  let isDone = false
  void waiting.then(() => (isDone = true))
  await clock.advance(500)
  assert.equal(isDone, false)
  await accounts.renew(account, tokensOf(clock, { accessToken: 'of the other', refreshToken: 'r-9' }))
  await until(
    () => isDone,
    'the token of the other replica',
    () => clock.advance(250),
  )
  assert.equal(await waiting, 'of the other')
  assert.equal(provider.renewals, 0)
})

test('a renewal by a replica that does not end delays a call for ten seconds, and is repeated when its lease is over', async () => {
  const { vault, clock, leases, provider, owner } = await scriptedVault()
  await vault.connect(owner, tokensOf(clock))
  const account = vault.account(owner) ?? assert.fail('there is no account')
  await clock.advance(61 * MINUTE_MS)
  await leases.acquire(`account/${account.id}`, 20_000)
  const call = async () => {
    let result: string | null = null
    void Promise.resolve(vault.of(SERVER, 'hub', ada)).then((found) => (result = tokenOf(found)))
    await until(
      () => result !== null,
      'the result',
      () => clock.advance(250),
    )
    return result
  }
  assert.equal(await call(), 'upstream_credential')
  assert.equal(await call(), 'renewed-1')
  assert.equal(provider.renewals, 1)
})

test('while leases are unknown a token is used until it expires, and none is renewed', async () => {
  const away: Leases = { acquire: () => Promise.reject(new StateUnreachableError('away')) }
  const { vault, clock, provider, owner } = await scriptedVault({}, away)
  await vault.connect(owner, tokensOf(clock))
  await clock.advance(59.5 * MINUTE_MS)
  assert.equal(tokenOf(await vault.of(SERVER, 'hub', ada)), 'first')
  await clock.advance(MINUTE_MS)
  assert.equal(tokenOf(await vault.of(SERVER, 'hub', ada)), 'state_unavailable')
  assert.equal(provider.renewals, 0)
})

test('renewed tokens that cannot be stored are used, and stored later; until then no other replica renews', async () => {
  const { vault, accounts, journal, clock, leases, owner } = await scriptedVault()
  await vault.connect(owner, tokensOf(clock))
  const { id } = vault.account(owner) ?? assert.fail('there is no account')
  await clock.advance(59.5 * MINUTE_MS)
  const append = journal.append.bind(journal)
  journal.append = () => Promise.reject(new StateUnreachableError('away'))
  assert.equal(tokenOf(await vault.of(SERVER, 'hub', ada)), 'renewed-1')
  await clock.advance(2_000)
  assert.equal(await leases.acquire(`account/${id}`, 1_000), null)
  journal.append = append
  const stored = async () => {
    const account = vault.account(owner)
    return account === null ? null : (await accounts.tokens(account))?.accessToken
  }
  await until(
    async () => (await stored()) === 'renewed-1',
    'the stored tokens',
    () => clock.advance(500),
  )
  await until(async () => (await leases.acquire(`account/${id}`, 1_000)) !== null, 'the end of the lease')
})
