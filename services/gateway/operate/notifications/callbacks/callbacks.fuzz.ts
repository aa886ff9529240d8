import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../../test/fuzz/target.ts'
import { type ReadSigned, readSlack, readTeams, readWebhook } from './signed.ts'

const NOW = Date.UTC(2026, 0, 1)
const SECONDS = String(NOW / 1000)
const SECRET = 'secret'

const bodies = near([
  `payload=${encodeURIComponent('{"user":{"id":"U"},"actions":[{"action_id":"plat_approve","value":"a"}]}')}`,
  '{"approval":"a","verdict":"approve","reason":"r","user":"u"}',
  `{"channelId":"msteams","timestamp":"2026-01-01T00:00:00Z","text":"<at>p</at> deny 00000000-0000-0000-0000-000000000000 no","from":{"aadObjectId":"u"}}`,
])

const sign = (text: string, encoding: 'hex' | 'base64', key: string | Buffer = SECRET) =>
  createHmac('sha256', key).update(text).digest(encoding)

/** Each reader with a function that signs a body. */
const readers: readonly (readonly [ReadSigned, (body: string) => Record<string, string>])[] = [
  [
    readSlack,
    (body) => ({
      'x-slack-request-timestamp': SECONDS,
      'x-slack-signature': `v0=${sign(`v0:${SECONDS}:${body}`, 'hex')}`,
    }),
  ],
  [
    readWebhook,
    (body) => ({
      'webhook-id': 'i',
      'webhook-timestamp': SECONDS,
      'webhook-signature': `v1,${sign(`i.${SECONDS}.${body}`, 'base64')}`,
    }),
  ],
  [readTeams, (body) => ({ authorization: `HMAC ${sign(body, 'base64', Buffer.from(SECRET, 'base64'))}` })],
]

/** A signed body yields a decision or none, an unsigned one is refused, and no input throws. */
export const target = fuzzTarget('gateway: callbacks of notifiers', {
  'a signed body is a decision or none': fc.property(bodies, fc.constantFrom(...readers), (body, [read, headersOf]) => {
    const callback = read({ headers: headersOf(body), body: Buffer.from(body) }, SECRET, NOW)
    if (typeof callback === 'string') return
    assert.ok(callback.verdict === 'approve' || callback.verdict === 'deny')
    assert.ok(typeof callback.approval === 'string' && typeof callback.user === 'string' && callback.mark !== '')
  }),
  'a body that is not what was signed is refused': fc.property(
    bodies,
    fc.string({ minLength: 1 }),
    fc.constantFrom(...readers),
    (body, more, [read, headersOf]) => {
      const changed = Buffer.from(body + more)
      assert.equal(read({ headers: headersOf(body), body: changed }, SECRET, NOW), 'unauthenticated')
    },
  ),
})
