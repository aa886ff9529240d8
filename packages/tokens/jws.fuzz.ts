import assert from 'node:assert/strict'
import { systemClock } from '@plat/core'
import { ephemeralSigner } from '@plat/keys'
import fc from 'fast-check'
import { fuzzTarget } from '../../test/fuzz/target.ts'
import { createVerifier } from './index.ts'
import { signJws } from './jws.ts'
import { staticSource } from './keyset.ts'

const signer = ephemeralSigner()
const verifier = createVerifier({
  keys: staticSource([signer.publicKey]),
  audience: 'a',
  leewaySeconds: 0,
  clock: systemClock,
})

/** A claim-like member with a value of any kind: after the signature it must still not cause a crash. */
const claimNames = ['iss', 'sub', 'aud', 'iat', 'nbf', 'exp', 'jti', 'act', 'scope', 'cnf', 'plat_ns', 'plat_groups']
const claims = fc.dictionary(fc.constantFrom(...claimNames), fc.anything({ withNullPrototype: false }), { maxKeys: 8 })
const token = fc.oneof(
  fc.string({ maxLength: 200 }),
  fc.array(fc.base64String({ maxLength: 60 }), { minLength: 2, maxLength: 4 }).map((parts) => parts.join('.')),
  claims.map((members) => signed(members)),
  fc.tuple(claims, fc.nat(), fc.string({ minLength: 1, maxLength: 2 })).map(([members, at, text]) => {
    const whole = signed(members)
    const place = at % whole.length
    return whole.slice(0, place) + text + whole.slice(place + 1)
  }),
)

function signed(members: object): string {
  try {
    return signJws(signer, {}, members)
  } catch {
    // Values that JSON cannot represent (a bigint) cannot be signed either.
    return signJws(signer, {}, {})
  }
}

/** No text makes the strict parser or the verifier throw, and none is accepted. */
export const target = fuzzTarget('tokens: strict JWS and session claims', {
  'none of these is a token': fc.property(token, (text) => {
    const answer = verifier.verify(text)
    assert.ok('kind' in answer && answer.kind === 'fault')
  }),
})
