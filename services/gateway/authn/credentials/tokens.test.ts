import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import type { Grant } from './endpoint.ts'
import { Token } from './tokens.ts'

/** A token with a scripted endpoint. */
function tokenOf(marginMs = 60_000) {
  const clock = new TestClock()
  const requests: ((answer: Grant | string) => void)[] = []
  const token = new Token({ clock, marginMs, ask: () => new Promise((resolve) => requests.push(resolve)) })
  let count = 0
  const grant = (expiresInSeconds: number | null): Grant => {
    count++
    return { credential: { headers: { authorization: `Bearer ${count}` }, clientCert: null }, expiresInSeconds }
  }
  /** Requests the token and completes the request. */
  const fetched = async (answer: Grant | string) => {
    const waiting = token.get()
    assert.ok(waiting instanceof Promise)
    requests.at(-1)?.(answer)
    return waiting
  }
  return { clock, token, requests, grant, fetched }
}

test('a token is used until 60 s before it expires, counted from before the request, and is returned synchronously', async () => {
  // Shows D2.auth.oauthClientCredentials.cached.
  const { clock, token, requests, grant } = tokenOf()
  const first = grant(300)
  const waiting = token.get()
  await clock.advance(5_000)
  requests[0]?.(first)
  assert.equal(await waiting, first.credential)
  await clock.advance(300_000 - 60_000 - 5_000 - 1)
  assert.equal(token.get(), first.credential)
  await clock.advance(1)
  assert.ok(token.get() instanceof Promise)
  assert.equal(requests.length, 2)
})

test('concurrent calls share one request, and a token that lives less than the margin serves only those', async () => {
  const { token, requests, grant } = tokenOf()
  const waiting = [token.get(), token.get(), token.get()]
  assert.equal(requests.length, 1)
  const short = grant(60)
  requests[0]?.(short)
  assert.deepEqual(await Promise.all(waiting), [short.credential, short.credential, short.credential])
  assert.ok(token.get() instanceof Promise)
  assert.equal(requests.length, 2)
})

test('a token without expires_in is used for five minutes', async () => {
  const { clock, token, fetched, grant } = tokenOf()
  const untold = grant(null)
  assert.equal(await fetched(untold), untold.credential)
  await clock.advance(239_999)
  assert.equal(token.get(), untold.credential)
  await clock.advance(1)
  assert.ok(token.get() instanceof Promise)
})

test('after a failure there is no request for one second', async () => {
  const { clock, token, requests, fetched, grant } = tokenOf()
  assert.equal(await fetched('no'), 'no')
  assert.equal(token.get(), 'no')
  await clock.advance(1_000)
  const good = grant(300)
  assert.equal(await fetched(good), good.credential)
  assert.equal(requests.length, 2)
})

test('a refused token is replaced only after a minimum age, and never by itself', async () => {
  const { clock, token, requests, fetched, grant } = tokenOf()
  const first = grant(300)
  await fetched(first)
  assert.equal(await token.renewed(first.credential), null, 'it is too young')
  await clock.advance(10_000)
  const renewing = [token.renewed(first.credential), token.renewed(first.credential)]
  assert.equal(requests.length, 2)
  const second = grant(300)
  requests[1]?.(second)
  assert.deepEqual(await Promise.all(renewing), [second.credential, second.credential])
  assert.equal(await token.renewed(first.credential), second.credential, 'another call has renewed it')
  await clock.advance(10_000)
  const failing = token.renewed(second.credential)
  requests[2]?.('no')
  assert.equal(await failing, null)
})
