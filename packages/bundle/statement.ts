import { hash } from 'node:crypto'
import { canonicalJson, slicedSha256 } from '@plat/core'
import { InvalidClaimError, type Members, readingClaims, secondsClaim, type TokenFault, textClaim } from '@plat/tokens'
import type { Entry } from './tar.ts'

/** `typ` of the signatures. */
export const TYPE = 'plat-config-bundle+jws'

/** Signed statement about a bundle. Times are Unix seconds. */
export interface BundleStatement {
  /** `iss`: who made it. */
  readonly issuer: string
  /** Increases with each bundle; a lower revision than the active one is a replay. */
  readonly revision: number
  /** `iat` */
  readonly issuedAt: number
  /** `nbf`; null: may be applied at once. */
  readonly notBefore: number | null
  /** `exp`: end of the period in which it may be applied; null: none. An applied bundle stays active. */
  readonly expiresAt: number | null
  /** SHA-256 of its files, see `digestOf`. */
  readonly digest: string
}

/** SHA-256, as hex, of the canonical JSON (RFC 8785) of an object: the name of each file, and its SHA-256 as hex. */
export function digestOf(files: readonly Entry[]): string {
  return digestOfSums(files.map(({ name, bytes }) => [name, hash('sha256', bytes)]))
}

/** `digestOf` in slices that yield: hashing 64 MiB may take 200 ms. */
export async function digestInSlices(files: readonly Entry[]): Promise<string> {
  const sums: [string, string][] = []
  for (const { name, bytes } of files) sums.push([name, await slicedSha256(bytes)])
  return digestOfSums(sums)
}

function digestOfSums(sums: readonly (readonly [name: string, sum: string])[]): string {
  return hash('sha256', canonicalJson(Object.fromEntries(sums)))
}

/** From the payload of a signature. */
export function decodeStatement(members: Members): BundleStatement | TokenFault {
  return readingClaims(() => {
    const { revision } = members
    if (typeof revision !== 'number' || !Number.isSafeInteger(revision) || revision < 1) {
      throw new InvalidClaimError('"revision" is not a whole number from 1 on')
    }
    const digest = textClaim(members, 'digest')
    if (!/^[0-9a-f]{64}$/.test(digest)) throw new InvalidClaimError('"digest" is not a SHA-256 in hex')
    const time = (name: string) => (members[name] === undefined ? null : secondsClaim(members, name))
    return {
      issuer: textClaim(members, 'iss'),
      revision,
      issuedAt: secondsClaim(members, 'iat'),
      notBefore: time('nbf'),
      expiresAt: time('exp'),
      digest,
    }
  })
}

/** The payload that is signed. */
export function statementMembers(statement: BundleStatement): object {
  const { issuer, revision, issuedAt, notBefore, expiresAt, digest } = statement
  return {
    iss: issuer,
    revision,
    iat: issuedAt,
    nbf: notBefore ?? undefined,
    exp: expiresAt ?? undefined,
    digest,
  }
}
