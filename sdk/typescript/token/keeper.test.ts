import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { testProver } from '@plat/testkit/dpop'
import { testIssuer } from '@plat/testkit/identity'
import { TokenKeeper } from './keeper.ts'
import { Prover } from './prover.ts'
import { type TokenSource, TokenUnavailableError } from './source.ts'

const MINUTE = 60_000

/** Next results of the source. */
interface Scripted {
  requests: number
  claims: Readonly<Record<string, unknown>>
  failing: Error | null
  gate: Promise<void>
}

/** A source that a test makes fail or hang, and a keeper of its tokens; each lives 15 minutes. */
function setUp(prover: Prover | null = null, clock = new TestClock()) {
  const issuer = testIssuer({ clock })
  const source: Scripted = { requests: 0, claims: {}, failing: null, gate: Promise.resolve() }
  const of: TokenSource = {
    name: 'the test',
    async issue() {
      source.requests++
      await source.gate
      if (source.failing !== null) throw source.failing
      return { token: issuer.token(source.claims) }
    },
  }
  const bind = async (token: string, by: Prover) => {
    const [, payload = ''] = token.split('.')
    return issuer.token({ ...JSON.parse(Buffer.from(payload, 'base64url').toString()), cnf: { jkt: by.jkt } })
  }
  return {
    clock,
    issuer,
    source,
    keeper: new TokenKeeper(
      { source: of, clock, ids: { random: (bytes) => new Uint8Array(bytes).fill(128) }, bind },
      prover,
    ),
  }
}

/** Lets what was begun come to its first pause, then moves time on. */
async function pass(clock: TestClock, ms: number): Promise<void> {
  await clock.advance(0)
  await clock.advance(ms)
}

const away = () => new TokenUnavailableError('away', { retryable: true })

test('concurrent calls share one token request', async () => {
  const { keeper, source } = setUp()
  const [first, ...others] = await Promise.all([keeper.current(), keeper.current(), keeper.current()])
  assert.ok(others.every((one) => one === first))
  assert.equal(await keeper.current(), first)
  assert.equal(source.requests, 1)
})

test('after two thirds of its lifetime a token is renewed in the background', async () => {
  const { keeper, source, clock } = setUp()
  const first = await keeper.current()
  await clock.advance(10 * MINUTE - 1)
  assert.equal(await keeper.current(), first)
  assert.equal(source.requests, 1)
  await clock.advance(1)
  const held = Promise.withResolvers<void>()
  source.gate = held.promise
  assert.equal(await keeper.current(), first, 'the old one serves meanwhile')
  assert.equal(await keeper.current(), first)
  assert.equal(source.requests, 2)
  held.resolve()
  await clock.advance(0)
  assert.notEqual(await keeper.current(), first)
  assert.equal(source.requests, 2)
})

test('while the source is unavailable the token is used until it expires, with rare retries, and then calls reject', async () => {
  const { keeper, source, clock } = setUp()
  const first = await keeper.current()
  await clock.advance(10 * MINUTE)
  source.failing = away()
  assert.equal(await keeper.current(), first)
  await pass(clock, 2_000)
  assert.equal(source.requests, 5, 'four tries')
  for (let call = 0; call < 10; call++) assert.equal(await keeper.current(), first)
  assert.equal(source.requests, 5, 'and a pause')
  await clock.advance(5 * MINUTE)
  const refused = assert.rejects(keeper.current(), {
    name: 'TokenUnavailableError',
    message: 'no session token of the test: away',
    retryable: true,
  })
  await pass(clock, 5_000)
  await refused
  source.failing = null
  assert.notEqual(await keeper.current(), first)
})

test('a renewal that cannot succeed is tried once', async () => {
  const { keeper, source } = setUp()
  source.failing = new TokenUnavailableError('never')
  await assert.rejects(keeper.current(), { message: /never/, retryable: false })
  assert.equal(source.requests, 1)
})

test('a token that was refused is given up for another one, but not each time', async () => {
  const { keeper, source, clock } = setUp()
  const first = await keeper.current()
  assert.equal(await keeper.instead(first), first, 'it is brand new: another would be refused as well')
  await clock.advance(5_000)
  const [second, third] = await Promise.all([keeper.instead(first), keeper.instead(first)])
  assert.ok(second === third && second !== first)
  assert.equal(await keeper.instead(first), second, 'a late one takes what is there')
  assert.equal(source.requests, 2)
})

test('an expired token, one of another kind and one of another key are not sent', async () => {
  const { keeper, source, clock } = setUp()
  source.claims = { exp: Math.floor(clock.now() / 1000) - 1 }
  const expired = assert.rejects(keeper.current(), /expired by the clock of this machine/)
  await pass(clock, 5_000)
  await expired
  source.claims = { sub: 'spiffe://elsewhere/x' }
  await assert.rejects(keeper.current(), /not a session token: claim "sub" is not a session/)
  source.claims = { cnf: { jkt: testProver().jkt } }
  await assert.rejects(keeper.current(), /bound to another key: give the private key as dpop\.privateKey/)
})

test('every token is bound to the key, from the start or from a later moment', async () => {
  const clock = new TestClock()
  const prover = new Prover(clock)
  const { keeper } = setUp(prover, clock)
  assert.equal((await keeper.current()).claims.jkt, prover.jkt)
  const later = setUp(null, clock)
  assert.equal((await later.keeper.current()).claims.jkt, null)
  await later.keeper.bindTo(prover)
  assert.equal((await later.keeper.current()).claims.jkt, prover.jkt)
  assert.equal(later.source.requests, 1, 'the same token, bound')
  await assert.rejects(later.keeper.bindTo(prover), /already has a key/)
})

test('a call that is given up stops waiting; the others get the token', async () => {
  const { keeper, source } = setUp()
  const held = Promise.withResolvers<void>()
  source.gate = held.promise
  const leaving = new AbortController()
  const left = assert.rejects(keeper.current(leaving.signal), /left/)
  const stays = keeper.current()
  leaving.abort(new Error('left'))
  await left
  held.resolve()
  assert.ok((await stays).text)
})

test('a closed keeper drops its token and requests no other', async () => {
  const { keeper, source } = setUp()
  await keeper.current()
  keeper.close()
  await assert.rejects(keeper.current(), /the session is closed/)
  assert.equal(source.requests, 1)
})

test('errors never quote a token', async () => {
  const { keeper, source, issuer, clock } = setUp()
  const secret = issuer.token()
  source.failing = new Error(`cannot parse ${secret}`)
  const rejected = assert.rejects(keeper.current(), (error: Error) => !error.message.includes(secret.slice(0, 40)))
  await pass(clock, 5_000)
  await rejected
})
