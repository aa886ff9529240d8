import assert from 'node:assert/strict'
import { ephemeralSigner } from '@plat/keys'
import { isFault, signJws } from '@plat/tokens'
import fc from 'fast-check'
import { fuzzTarget } from '../../test/fuzz/target.ts'
import { readAuthority } from './authority.ts'
import { readLicense } from './license.ts'
import { standingOf } from './standing.ts'

const signer = ephemeralSigner()
const authority = readAuthority(JSON.stringify(signer.publicJwk), 'fuzz')
const header = { typ: 'plat-license+jws' }
const claims = { jti: 'L', sub: 'S', edition: 'team', nbf: 1, exp: 2, graceDays: 1, nodes: 1 }
const good = signJws(signer, header, claims)

const claim = fc.constantFrom('jti', 'sub', 'edition', 'nbf', 'exp', 'graceDays', 'nodes', 'x')
const value = fc.oneof(fc.constantFrom(undefined, null, '', 'team', 0, 1, -1, 1.5, 1e300, [], {}), fc.jsonValue())

/** Limits and days are what the state says, at any time. */
function isBounded(text: string, now: number): void {
  const { state, nodeLimit, daysLeft, license } = standingOf(readLicense(text, authority), now)
  assert.ok(Number.isInteger(nodeLimit) && nodeLimit >= 0)
  assert.equal(license === null, state === 'invalid')
  assert.equal(daysLeft === null, state === 'invalid')
  if (daysLeft !== null) assert.equal(daysLeft < 0, state !== 'valid')
}

export const target = fuzzTarget('licence', {
  'every text signed by the authority has a valid state': fc.property(
    fc.dictionary(claim, value, { maxKeys: 4 }),
    fc.nat(5_000),
    (own, now) => isBounded(signJws(signer, header, { ...claims, ...own }), now),
  ),
  'a licence with one character changed is none': fc.property(
    fc.nat(good.length - 1),
    fc.string({ minLength: 1, maxLength: 2 }),
    (at, other) => {
      const text = good.slice(0, at) + other + good.slice(at + 1)
      if (text.trim() !== good) assert.ok(isFault(readLicense(text, authority)))
    },
  ),
})
