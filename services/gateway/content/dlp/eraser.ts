import { whenReady } from '@plat/core'
import { type Denial, isDenial } from '../../call/index.ts'
import { DETECTOR_IDS } from './detectors/table.ts'
import { compileProfile, type ProfileConfig } from './profile.ts'
import { Redaction } from './redaction.ts'

/** Every detector, including those that are off by default. */
const EVERYTHING: ProfileConfig = {
  detectors: [...DETECTOR_IDS],
  custom: [],
  requestAction: 'redact',
  responseAction: 'off',
  maxScanBytes: 1024 * 1024,
  streamCarryBytes: 0,
  entropyMinLength: 32,
  entropyThreshold: 4.3,
}

/** Redacts arguments. Results in null if they are too long, or not strict JSON; in a promise if they are long: then it works in slices. */
export type Eraser = (args: Uint8Array) => Uint8Array | null | Promise<Uint8Array | null>

/**
 * Redacts all hits of a profile in arguments, whatever its actions. Without a profile of that name all detectors
 * are used.
 */
export function createEraser(profiles: Readonly<Record<string, ProfileConfig>>, name: string): Eraser {
  const { onSecret: _, ...named } = (Object.hasOwn(profiles, name) ? profiles[name] : undefined) ?? EVERYTHING
  const profile = compileProfile(name, { ...named, requestAction: 'redact', onOversize: 'deny' })
  const direction = profile.arguments
  return (args) => {
    if (direction === null) return null
    return whenReady(new Redaction(profile, direction, 'arguments', () => {}).message(args, {}), allowed)
  }
}

function allowed(redacted: Uint8Array | Denial): Uint8Array | null {
  return isDenial(redacted) ? null : redacted
}
