import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { readJson, TestClock } from '@plat/core'
import { thumbprint } from '@plat/keys'
import { testIssuer } from '@plat/testkit/identity'
import { normalHtu } from '@plat/tokens'
import { isTraceparent } from './call/trace.ts'
import { denialOf } from './denied/denied.ts'
import { factsIn } from './denied/response.ts'
import { retryAfterIn } from './denied/retry-after.ts'
import { connect } from './index.ts'

/** The vectors that both SDKs share; `sdk/python/tests/test_vectors.py` reads the same file. */
const vectors = JSON.parse(readFileSync(path.join(import.meta.dirname, '../behaviour/vectors.json'), 'utf8'))
const json = { 'content-type': 'application/json' }

function headerOf(headers: Readonly<Record<string, string>> = {}) {
  return (name: string) => headers[name] ?? null
}

for (const { name, headers, now = 0, seconds } of vectors.retryAfter) {
  test(`Retry-After: ${name}`, () => {
    assert.equal(retryAfterIn(headerOf(headers), now * 1000), seconds === null ? null : seconds * 1000)
  })
}

/** The body of a response in a vector of `repeats`. */
function bodyOf({ body, plat, result }: Readonly<Record<string, unknown>>): unknown {
  if (body !== undefined) return body
  if (plat !== undefined) return { error: plat, message: 'no', requestId: 'r' }
  if (result === undefined) return { ok: true }
  const denial = { code: 429, error: result, decisionId: 'd', reason: 'later' }
  return { jsonrpc: '2.0', id: 1, result: { isError: true, _meta: { 'plat.dev/denial': denial } } }
}

for (const vector of vectors.repeats) {
  test(`a call is sent ${vector.sends} times: ${vector.name}`, async () => {
    const clock = new TestClock()
    let sent = 0
    const fetch: typeof globalThis.fetch = async () => {
      sent++
      const init = { status: vector.status, headers: { ...json, ...vector.headers } }
      return new Response(JSON.stringify(bodyOf(vector)), init)
    }
    const source = { name: 'the test', issue: async () => ({ token: testIssuer({ clock }).token() }) }
    const session = await connect({ gatewayURL: 'https://gateway.example', source, fetch, clock, env: {} })
    const { method = 'POST' } = vector
    const call = session.fetch('https://gateway.example/mcp/notes', { method }).catch(() => null)
    for (let pause = 0; pause < 5; pause++) {
      await clock.advance(0)
      await clock.advance(30_000)
    }
    await call
    assert.equal(sent, vector.sends)
  })
}

for (const { name, body, status, headers, facts } of vectors.refusals) {
  test(`a refusal is read: ${name}`, () => {
    const read = factsIn(body, status, headerOf(headers))
    if (facts === null || read === null) return assert.equal(read, facts)
    const { retryAfterMs } = read
    const seen: Readonly<Record<string, unknown>> = {
      ...read,
      kind: denialOf(read).name,
      retryAfterSeconds: retryAfterMs === null ? null : retryAfterMs / 1000,
    }
    assert.deepEqual(Object.fromEntries(Object.keys(facts).map((member) => [member, seen[member]])), facts)
  })
}

for (const { name, text, repeat, valid } of vectors.json) {
  test(`strict JSON: ${name}`, () => {
    const [open = '', count = 0, close = ''] = repeat ?? []
    const document = repeat === undefined ? text : `{"a": ${open.repeat(count)}${close.repeat(count)}}`
    assert.equal(readJson(Buffer.from(document)) !== undefined, valid)
  })
}

for (const { name, a, b, equal } of vectors.urls) {
  test(`URLs of proofs: ${name}`, () => {
    assert.equal(normalHtu(a) !== null && normalHtu(a) === normalHtu(b), equal)
  })
}

test('the token is sent only to the gateway', async () => {
  const { gatewayURL, inside, outside } = vectors.reach
  const source = { name: 'the test', issue: async () => ({ token: testIssuer().token() }) }
  let sent = 0
  const fetch: typeof globalThis.fetch = async () => {
    sent++
    return new Response('{}')
  }
  const session = await connect({ gatewayURL, source, fetch, env: {} })
  for (const url of outside) await assert.rejects(session.fetch(url), /calls only the gateway/, url)
  assert.equal(sent, 0)
  for (const url of inside) await session.fetch(url)
  assert.equal(sent, inside.length)
})

test('a thumbprint of RFC 8037', () => {
  assert.equal(thumbprint(vectors.thumbprint.jwk), vectors.thumbprint.thumbprint)
})

test('values of traceparent', () => {
  for (const { value, valid } of vectors.traceparent) assert.equal(isTraceparent(value), valid, value)
})
