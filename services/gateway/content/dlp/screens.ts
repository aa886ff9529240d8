import type { Denial, RedactionScope } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import { NO_PROFILE } from './config.ts'
import { createHitCounter } from './metrics.ts'
import { compileProfile, type Direction, type Profile, type ProfileConfig } from './profile.ts'
import { type CountHit, type DirectionName, Redaction } from './redaction.ts'

/** What one profile makes of JSON that the gateway keeps and gives back: the same bytes where nothing is to be replaced. */
export interface Screen {
  /** On its way in, as arguments are. */
  taken(json: Uint8Array, where?: RedactionScope): Uint8Array | Denial
  /** On its way out, as answers are. */
  given(json: Uint8Array, where?: RedactionScope): Uint8Array | Denial
}

const OPEN: Screen = { taken: (json) => json, given: (json) => json }

/** Profiles by the names that resources give, compiled when they are first asked for. Null: `dlpProfiles` has none of this name. */
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

function screenOf(profile: Profile, count: CountHit): Screen {
  const through =
    (direction: Direction | null, name: DirectionName) =>
    (json: Uint8Array, where: RedactionScope = {}) =>
      direction === null ? json : new Redaction(profile, direction, name, count).json(json, where)
  return { taken: through(profile.arguments, 'arguments'), given: through(profile.response, 'response') }
}
