import assert from 'node:assert/strict'
import { systemClock, TestClock } from '@plat/core'
import fc from 'fast-check'
import { credentialOf } from './aws-sts.ts'

/** Cases between two looks at the clock. */
const BATCH = 500

const PIECES = [
  '<AssumeRoleWithWebIdentityResponse>',
  '<AccessKeyId>ASIA1</AccessKeyId>',
  '<SecretAccessKey>secret</SecretAccessKey>',
  '<SessionToken>token</SessionToken>',
  '<Expiration>2999-01-01T00:00:00Z</Expiration>',
  '</AssumeRoleWithWebIdentityResponse>',
]
const GOOD = PIECES.join('')

/** The good answer with pieces put in anywhere, and cut. */
const answers = fc
  .array(fc.tuple(fc.nat(GOOD.length), fc.nat(4), fc.oneof(fc.constantFrom(...PIECES, '<', '&', '<!'), fc.string())), {
    maxLength: 4,
  })
  .map((edits) => edits.reduce((xml, [at, cut, put]) => xml.slice(0, at) + put + xml.slice(at + cut), GOOD))

/** No answer makes the reader of STS's answers throw, and none with a secret twice gives a credential. */
export const target = {
  name: 'exchange: answers of AWS STS',
  async run(seconds: number, seed: number): Promise<{ cases: number }> {
    const clock = new TestClock()
    assert.equal(credentialOf({ clock }, GOOD).kind, 'credential')
    const end = systemClock.monotonic() + seconds * 1000
    let cases = 0
    for (let round = 0; systemClock.monotonic() < end; round++) {
      fc.assert(
        fc.property(answers, (xml) => {
          cases++
          const result = credentialOf({ clock }, xml)
          if (result.kind === 'failed') return
          assert.equal(xml.split('<SecretAccessKey>').length, 2)
          assert.ok(!/[<>&\s]/.test(JSON.parse(result.accessToken).SecretAccessKey))
        }),
        { seed: seed + round, numRuns: BATCH },
      )
    }
    return { cases }
  },
}
