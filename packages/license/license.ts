import {
  fault,
  InvalidClaimError,
  isFault,
  type Members,
  parseJws,
  plainClaim,
  readingClaims,
  secondsClaim,
  type TokenFault,
  textClaim,
} from '@plat/tokens'
import type { LicenseAuthority } from './authority.ts'

/** `typ` of a licence. */
const TYPE = 'plat-license+jws'
/** Largest licence file, in bytes. */
export const MAX_LICENSE_BYTES = 12 * 1024
/** Names of editions: label values, so short and plain. */
const EDITION = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/
/** The longest grace that a licence may give. */
const MAX_GRACE_DAYS = 366
/** More nodes than any cluster has. */
const MAX_NODES = 1_000_000_000

/** Claims of a licence. Times are Unix seconds. */
export interface License {
  /** `jti`: its number. */
  readonly id: string
  /** `sub`: the licensee. */
  readonly holder: string
  readonly edition: string
  /** `nbf` */
  readonly notBefore: number
  /** `exp` */
  readonly expiresAt: number
  /** Number of days after its end for which it stays valid. */
  readonly graceDays: number
  /** Nodes that it covers; 0: any number. */
  readonly nodes: number
}

/**
 * Parses a licence: a compact JWS (RFC 7515) of type `plat-license+jws`, signed with EdDSA by a key of the authority, with at most a line end around
 * it. Unknown members are ignored, so that licences of later versions work. Does not check the time.
 */
export function readLicense(text: string, authority: LicenseAuthority): License | TokenFault {
  const jws = parseJws(text.trim())
  if (isFault(jws)) return jws
  const { header, payload, input, signature } = jws
  if (header.typ !== TYPE) return fault('typ', `the header's "typ" is not ${TYPE}`)
  if (authority.size === 0) return fault('kid', 'this build has no key of anybody who issues licences')
  const key = header.kid === null ? null : authority.find(header.kid)
  if (key === null) return fault('kid', 'its key is none of those that issue licences for this build')
  if (header.alg !== key.algorithm.name || !key.algorithm.verify(input, key.key, signature)) {
    return fault('signature', 'its signature is wrong')
  }
  return decode(payload)
}

function decode(members: Members): License | TokenFault {
  return readingClaims(() => {
    const edition = textClaim(members, 'edition')
    if (!EDITION.test(edition)) throw new InvalidClaimError('claim "edition" is not a name of an edition')
    const [notBefore, expiresAt] = [secondsClaim(members, 'nbf'), secondsClaim(members, 'exp')]
    if (expiresAt <= notBefore) throw new InvalidClaimError('claim "exp" is not after "nbf"')
    return {
      id: plainClaim(textClaim(members, 'jti'), 'jti'),
      holder: plainClaim(textClaim(members, 'sub'), 'sub'),
      edition,
      notBefore,
      expiresAt,
      graceDays: countClaim(members, 'graceDays', MAX_GRACE_DAYS),
      nodes: countClaim(members, 'nodes', MAX_NODES),
    }
  })
}

/** A whole number from 0 to `most`; 0 when absent. */
function countClaim(members: Members, name: string, most: number): number {
  const value = members[name] ?? 0
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= most) return value
  throw new InvalidClaimError(`claim "${name}" is not a whole number from 0 to ${most}`)
}
