import type { DlpDirection, RedactionScope } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { NO_PROFILE } from './config.ts'
import { createHitCounter, type HitCounter } from './metrics.ts'
import { compileProfile, type Direction, type Profile, type ProfileConfig } from './profile.ts'
import { Redaction } from './redaction.ts'

/** Applies one profile to stored JSON; returns the same bytes if nothing is replaced. */
export interface Screen {
  /** Applies the settings for arguments, before JSON of a call is stored. */
  stored(json: Uint8Array, call: Counting, where?: RedactionScope): Redacted
  /** Applies the settings for responses, before JSON is returned to a call. */
  given(json: Uint8Array, call: Counting, where?: RedactionScope): Redacted
}

/** The call whose hits are counted. */
type Counting = Parameters<HitCounter>[0]

/** Of a long text a promise: it is redacted in slices. */
type Redacted = ReturnType<Redaction['message']>

const OPEN: Screen = { stored: (json) => json, given: (json) => json }

/** Returns profiles by name, compiled at first use, or null if there is none. */
export function createScreens(
  profiles: Readonly<Record<string, ProfileConfig>>,
  metrics: GatewayMetrics,
): (name: string) => Screen | null {
  const count = createHitCounter(metrics)
  const known = new Map<string, Screen>([[NO_PROFILE, OPEN]])
  return (name) => {
    const found = known.get(name)
    if (found !== undefined) return found
    const config = Object.hasOwn(profiles, name) ? profiles[name] : undefined
    if (config === undefined) return null
    const screen = screenOf(compileProfile(name, config), count)
    known.set(name, screen)
    return screen
  }
}

function screenOf(profile: Profile, count: HitCounter): Screen {
  const through =
    (direction: Direction | null, name: DlpDirection) =>
    (json: Uint8Array, call: Counting, where: RedactionScope = {}) =>
      direction === null ? json : new Redaction(profile, direction, name, count(call)).message(json, where)
  return { stored: through(profile.arguments, 'arguments'), given: through(profile.response, 'response') }
}
