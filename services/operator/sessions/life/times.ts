import { parseDuration } from '@plat/core'
import type { AgentSpec, Resource, TrustTierSpec } from '@plat/resources'

/** The annotation by which a gateway tells when the agent of a session last called something: RFC 3339. */
export const LAST_ACTIVITY = 'plat.dev/last-activity'

/** Milliseconds since the epoch; null for what is no time. */
export function timeOf(text: string | undefined): number | null {
  const ms = Date.parse(text ?? '')
  return Number.isNaN(ms) ? null : ms
}

/**
 * When a session that began at `startedAt` ends: the shortest of its own lifetime and the caps of its Agent and its TrustTier. Null: nothing
 * limits it. A lifetime of nothing is none.
 */
export function endOf(
  startedAt: number,
  { session, agent, tier }: { session: Resource<'AgentSession'>; agent?: AgentSpec; tier?: TrustTierSpec },
): number | null {
  const caps = [session.spec.ttl, agent?.maxSessionTTL, tier?.maxSessionTTL]
    .map((text) => parseDuration(text ?? '') ?? 0)
    .filter((ms) => ms > 0)
  return caps.length === 0 ? null : startedAt + Math.min(...caps)
}

/** After how long without activity a session is suspended, in milliseconds; null: never (`0s`). */
export function idleMsOf({ idleTimeout = '15m' }: Pick<AgentSpec, 'idleTimeout'>): number | null {
  const ms = parseDuration(idleTimeout) ?? 0
  return ms > 0 ? ms : null
}
