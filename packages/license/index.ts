export { buildAuthority, type LicenseAuthority, NO_AUTHORITY, readAuthority } from './authority.ts'
export { type FollowedLicense, followLicense } from './follow.ts'
export { type License, MAX_LICENSE_BYTES, readLicense } from './license.ts'
export { licenseMeter, licenseMetrics } from './metrics.ts'
export {
  COMMUNITY,
  type LicenseView,
  licenseView,
  NO_LICENSE,
  STATES as LICENSE_STATES,
  type Standing,
  standingOf,
} from './standing.ts'
