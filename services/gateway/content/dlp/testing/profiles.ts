import type { ProfileConfig } from '../profile.ts'

/** A profile with defaults. */
export const DEFAULTS: ProfileConfig = {
  custom: [],
  requestAction: 'redact',
  responseAction: 'redact',
  maxScanBytes: 1024 * 1024,
  streamCarryBytes: 256,
  entropyMinLength: 32,
  entropyThreshold: 4.3,
}
