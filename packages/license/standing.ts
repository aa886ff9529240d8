import { rfc3339 } from '@plat/core'
import { isFault, type TokenFault } from '@plat/tokens'
import type { License } from './license.ts'

/** Label `state` of `plat_license_state` (docs/spec/gateway.md, "Licence"). */
export const STATES = ['none', 'invalid', 'valid', 'grace', 'expired'] as const

export type LicenseState = (typeof STATES)[number]

/** The edition without a licence: all that there is. */
export const COMMUNITY = 'community'

const DAY_S = 24 * 60 * 60

/** State of a licence at one time. */
export interface Standing {
  readonly state: LicenseState
  readonly edition: string
  /** Why it is `invalid`; null in every other state. */
  readonly reason: string | null
  /** Null in the states `none` and `invalid`. */
  readonly license: License | null
  /** Whole days until the end, negative from the end on; null without a licence. */
  readonly daysLeft: number | null
  /** 0: unlimited. */
  readonly nodeLimit: number
}

/** No file is named. */
export const NO_LICENSE: Standing = withoutLicense('none', null)

function withoutLicense(state: 'none' | 'invalid', reason: string | null): Standing {
  return { state, edition: COMMUNITY, reason, license: null, daysLeft: null, nodeLimit: 0 }
}

/** State of a licence for people and programs. */
export interface LicenseView {
  readonly edition: string
  readonly state: LicenseState
  readonly reason?: string
  readonly id?: string
  readonly holder?: string
  /** RFC 3339. */
  readonly from?: string
  readonly until?: string
  readonly graceDays?: number
  readonly daysLeft?: number
  /** Number of nodes, or `unlimited`. */
  readonly nodes: number | 'unlimited'
}

/** Returns the view of a state: without the members that it does not have. */
export function licenseView({ state, edition, reason, license, daysLeft, nodeLimit }: Standing): LicenseView {
  return {
    edition,
    state,
    ...(reason !== null && { reason }),
    ...(license !== null && {
      id: license.id,
      holder: license.holder,
      from: rfc3339(license.notBefore * 1000),
      until: rfc3339(license.expiresAt * 1000),
      graceDays: license.graceDays,
    }),
    ...(daysLeft !== null && { daysLeft }),
    nodes: nodeLimit === 0 ? 'unlimited' : nodeLimit,
  }
}

/** Returns the state of a parsed licence at `now`, in milliseconds since the epoch. */
export function standingOf(read: License | TokenFault, now: number): Standing {
  if (isFault(read)) return withoutLicense('invalid', read.message)
  const { edition, notBefore, expiresAt, graceDays, nodes } = read
  const seconds = now / 1000
  if (seconds < notBefore) return withoutLicense('invalid', `it begins on ${rfc3339(notBefore * 1000)}`)
  const isOver = seconds >= expiresAt + graceDays * DAY_S
  const state = seconds < expiresAt ? 'valid' : isOver ? 'expired' : 'grace'
  const daysLeft = Math.floor((expiresAt - seconds) / DAY_S)
  // At the exact end no day is left.
  return {
    state,
    edition,
    reason: null,
    license: read,
    daysLeft: state === 'valid' ? daysLeft : Math.min(daysLeft, -1),
    nodeLimit: nodes,
  }
}
