import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { type TestContext, test } from 'node:test'
import { testProver } from '@plat/testkit/dpop'
import { testTransactions } from '@plat/testkit/tokens/transactions'
import { until } from '@plat/testkit/until'
import { jsonFile, startTestBroker, text } from '../testing/broker.ts'

const planner = { agent: 'planner', session: 'p1', user: 'ada', scopes: ['agents:helper', 'tools:a'] }
const helper = { agent: 'helper', session: 'h1', user: 'bob' }

function entry(target: object, change: object = {}) {
  return {
    id: 'r',
    target,
    mode: 'revoke',
    reason: 'test',
    createdAt: '2026-01-01T00:00:00Z',
    expiresAt: null,
    ...change,
  }
}

async function setUp(t: TestContext) {
  const revocationsFile = await jsonFile({ version: 1, revocations: [] })
  const exchangeConfig = await jsonFile({
    audiences: { reports: { allowedScopes: ['tools:a'], allowedNamespaces: ['default'] } },
  })
  const transactions = testTransactions()
  const txnTokenKeys = [await jsonFile(transactions.jwks)]
  const broker = await startTestBroker(t, { revocationsFile, exchangeConfig, txnTokenKeys })
  const { clock, identity, bind, exchange, verify } = broker
  /** Waits for the look that the clock set off: reading is the machine's own time. */
  const write = async (content: unknown, seen: () => Promise<boolean>) => {
    await fs.writeFile(revocationsFile, typeof content === 'string' ? content : JSON.stringify(content))
    await clock.advance(1000)
    await until(seen, 'the list read again')
  }
  const isValid = async (token: string) => (await verify(token)).valid === true
  const revoke = (entries: readonly object[], token: string, valid = false) =>
    write({ version: 1, revocations: entries }, async () => (await isValid(token)) === valid)
  const bindAnswer = (token: string) => {
    const url = `${identity.url}/v1/token/bind`
    return bind(token, testProver({ clock }).proof(url, token))
  }
  const delegate = (subject: string, actor: string) => exchange({ subject_token: subject, actor_token: actor })
  return { ...broker, transactions, write, isValid, revoke, bindAnswer, delegate }
}

test('a delegated or forked session ends with the session, agent or namespace that it came from, whatever token it has now', async (t) => {
  const { mint, isValid, revoke, delegate } = await setUp(t)
  const fork = { ...planner, session: 'p2', parentSession: 'p1', forkedFrom: ['first/p1', 'other/root'] }
  const [a, b] = [await mint(fork), await mint({ ...helper, namespace: 'team', forkedFrom: ['remote/h0'] })]
  await mint(fork)
  const scoped = await mint({ ...fork, scopes: ['agents:team/helper'] })
  const delegated = text((await delegate(scoped.token, b.token)).body.access_token)
  const ends: readonly (readonly [target: object, token: string])[] = [
    [{ session: 'default/first/p1' }, a.token],
    [{ agent: 'default/other' }, a.token],
    [{ session: 'default/planner/p2' }, delegated],
    [{ agent: 'default/planner' }, delegated],
    [{ namespace: 'default' }, delegated],
    [{ agent: 'default/first' }, delegated],
    [{ session: 'team/remote/h0' }, delegated],
  ]
  for (const [target, token] of ends) {
    await revoke([entry(target)], token)
    await revoke([], token, true)
  }
  await revoke([entry({ agent: 'default/planner' }), entry({ agent: 'default/x' })], delegated)
  assert.equal(await isValid(b.token), true, "the actor's own token does not end")
})

test('a user is revoked by name at every issuer, and with an issuer at that one', async (t) => {
  const { mint, isValid, revoke } = await setUp(t)
  const [ada, other] = [await mint({ ...planner, user: 'ada' }), await mint({ ...helper, user: 'bob' })]
  const [, payload = ''] = ada.token.split('.')
  const { iss } = JSON.parse(Buffer.from(payload, 'base64url').toString())
  await revoke([entry({ user: `${iss}#ada` })], ada.token)
  assert.equal(await isValid(other.token), true)
  await revoke([entry({ user: 'https://elsewhere.example#ada' })], ada.token, true)
  await revoke([entry({ user: 'ada' })], ada.token)
})

test('a revoked token passes nowhere: verify, bind, exchange, delegation as either party', async (t) => {
  const { mint, verify, revoke, bindAnswer, exchange, delegate } = await setUp(t)
  const [a, b, other] = [await mint(planner), await mint(helper), await mint({ ...helper, session: 'h2' })]
  assert.equal((await delegate(a.token, b.token)).status, 200)
  await revoke([entry({ jti: a.jti })], a.token)
  assert.deepEqual(await verify(a.token), { valid: false, error: 'token is revoked' })
  const bound = await bindAnswer(a.token)
  assert.deepEqual([bound.status, bound.body.error], [401, 'invalid_token'])
  const exchanged = await exchange({ subject_token: a.token, audience: 'reports' })
  assert.deepEqual([exchanged.status, exchanged.body.error], [400, 'invalid_grant'])
  assert.equal((await delegate(a.token, b.token)).body.error, 'invalid_grant')
  await revoke([entry({ jti: b.jti })], b.token)
  assert.equal((await delegate(a.token, b.token)).body.error, 'invalid_grant')
  assert.equal((await delegate(a.token, other.token)).status, 200)
})

test('every kind of target is checked, with its mode and its end', async (t) => {
  const { mint, verify, revoke, clock } = await setUp(t)
  const { token, jti } = await mint({ ...planner, ttlSeconds: 3600 })
  for (const target of [
    { jti },
    { session: 'default/planner/p1' },
    { agent: 'default/planner' },
    { namespace: 'default' },
    { user: 'ada' },
    { all: true },
  ]) {
    await revoke([entry(target)], token)
    await revoke([entry({ jti: 'another' })], token, true)
  }
  await revoke([entry({ user: 'ada' }, { mode: 'suspend' })], token)
  assert.deepEqual(await verify(token), { valid: false, error: 'token is suspended' })
  await revoke([], token, true)
  const until = new Date(clock.now() + 5000).toISOString()
  await revoke([entry({ user: 'ada' }, { expiresAt: until })], token)
  await clock.advance(5000)
  assert.equal((await verify(token)).valid, true)
})

test('every token derived from a revoked token is revoked with it', async (t) => {
  const { mint, isValid, revoke, exchange, delegate, verify } = await setUp(t)
  const [a, b] = [await mint(planner), await mint(helper)]
  const delegated = text((await delegate(a.token, b.token)).body.access_token)
  const exchanged = text((await exchange({ subject_token: a.token, audience: 'reports' })).body.access_token)
  assert.ok(await isValid(delegated))
  await revoke([entry({ jti: a.jti })], delegated)
  assert.equal((await verify(exchanged, 'reports')).error, 'token is revoked')
  await revoke([], delegated, true)
  await revoke([entry({ jti: b.jti })], delegated)
})

test('a transaction token of a revoked caller is refused', async (t) => {
  const { mint, revoke, exchange, transactions, clock } = await setUp(t)
  const b = await mint(helper)
  const witness = await mint(planner)
  const now = clock.now() / 1000
  const delegate = () =>
    exchange({
      subject_token: transactions.token({ iat: now, exp: now + 60 }),
      subject_token_type: 'urn:ietf:params:oauth:token-type:txn_token',
      actor_token: b.token,
    })
  assert.equal((await delegate()).status, 200)
  await revoke([entry({ jti: 'jti-of-planner' }), entry({ jti: witness.jti })], witness.token)
  assert.equal((await delegate()).body.error, 'invalid_grant')
})

test('a missing or invalid list refuses every token, and a valid one is used again', async (t) => {
  const { mint, verify, write, isValid, revoke, bindAnswer, exchange, lines } = await setUp(t)
  const { token } = await mint(planner)
  for (const content of [
    '{',
    '{}',
    { revocations: [entry({ jit: 'x' })] },
    { revocations: [entry({ jti: 'x', user: 'y' })] },
    { revocations: [entry({ all: false })] },
    { revocations: [entry({ jti: '' })] },
    { revocations: [entry({ jti: 'x' }, { mode: 'forget' })] },
    { revocations: [entry({ jti: 'x' }, { expiresAt: 'tomorrow' })] },
    { revocations: [1] },
  ]) {
    await write(content, async () => !(await isValid(token)))
    assert.equal((await verify(token)).error, 'the list of revocations cannot be read', JSON.stringify(content))
    await revoke([], token, true)
  }
  await write('{', async () => !(await isValid(token)))
  const bound = await bindAnswer(token)
  assert.deepEqual([bound.status, bound.body.error], [503, 'temporarily_unavailable'])
  const exchanged = await exchange({ subject_token: token, audience: 'reports' })
  assert.deepEqual([exchanged.status, exchanged.body.error], [503, 'temporarily_unavailable'])
  assert.ok(lines.some((line) => line.includes('every token is refused until it can be read')))
})

test('a list that is missing at the start refuses until it is there', async (t) => {
  const { mint, verify } = await startTestBroker(t, { revocationsFile: '/nowhere/revocations.json' })
  const { token } = await mint(planner)
  assert.equal((await verify(token)).valid, false)
})
