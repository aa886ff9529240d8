import assert from 'node:assert/strict'
import { TestClock } from '@plat/core'
import fc from 'fast-check'
import { fuzzTarget } from '../../../../test/fuzz/target.ts'
import { credentialOf } from './aws-sts.ts'

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

const clock = new TestClock()

/** No answer makes the reader of STS's answers throw, and none with a secret twice gives a credential. */
export const target = fuzzTarget('exchange: answers of AWS STS', {
  'one secret or no credential': fc.property(answers, (xml) => {
    const result = credentialOf({ clock }, xml)
    if (result.kind === 'failed') return assert.notEqual(xml, GOOD)
    assert.equal(xml.split('<SecretAccessKey>').length, 2)
    assert.ok(!/[<>&\s]/.test(JSON.parse(result.accessToken).SecretAccessKey))
  }),
})
