import assert from 'node:assert/strict'
import { isObject, systemIds, TestClock } from '@plat/core'
import { memoryOnceSets } from '@plat/state'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../test/fuzz/target.ts'
import { browserCookie } from './flow/browser.ts'
import { type FlowSealer, Flows } from './flow/flows.ts'
import { failedPage } from './flow/pages.ts'
import { plainResponse } from './providers/plain-response.ts'
import { decodeEvent } from './store/account.ts'

const clock = new TestClock()
const answers = near([
  '{"access_token":"a","token_type":"user","expires_in":3600}',
  '{"error":"invalid_grant","ok":false}',
])
const headers = near([`__Host-plat-connect=${'A'.repeat(43)}; a=b`, '__Host-plat-connect='])
const cookie = browserCookie({ isSecure: true, ttlSeconds: 600 })

/** A sealer that seals nothing: what it opens is what an attacker with the key would write. */
const open: FlowSealer = { seal: (_, { id }) => id, open: (_, text) => ({ id: text }) }
const flows = new Flows({ sealer: open, once: memoryOnceSets(clock), clock, ids: systemIds(clock), ttlMs: 1_000 })

/** Untrusted input of the vault: provider responses, cookies, states, journal lines, texts on pages. */
export const target = fuzzTarget('token-vault', {
  'an answer is left as it is, or becomes one of RFC 6749': fc.property(
    answers,
    fc.constantFrom(200, 400, 500),
    (text, status) => {
      const bytes = Buffer.from(text)
      const plain = plainResponse(status, bytes)
      if (plain.bytes === bytes) return
      const value: unknown = JSON.parse(Buffer.from(plain.bytes).toString())
      assert.ok(isObject(value))
      assert.ok(plain.status === status || ('error' in value && plain.status === 400))
    },
  ),
  'a cookie is 43 characters of base64url, or none': fc.property(headers, (header) => {
    const value = cookie.read(header)
    assert.ok(value === null || (/^[A-Za-z0-9_-]{43}$/.test(value) && header.includes(value)))
  }),
  'what is not a flow opens as none': fc.property(fc.jsonValue(), (value) => {
    assert.equal(flows.open('login', 'b', JSON.stringify(value)), null)
  }),
  'an event that is not known is refused': fc.property(fc.jsonValue(), (value) => {
    assert.throws(() => decodeEvent(value))
  }),
  'words stand on a page as text': fc.property(near(['<script>', '"><img src=x onerror=1>', '&amp;']), (words) => {
    const { html } = failedPage(400, words, words)
    const rest = html.replace(/<style>[^<]*<\/style>/, '')
    assert.doesNotMatch(rest, /<script|<img/)
  }),
})
