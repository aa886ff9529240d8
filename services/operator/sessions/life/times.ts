import { parseDuration } from '@plat/core'
import type { AgentSpec, Resource, TrustTierSpec } from '@plat/resources'

/** The annotation in which a gateway writes the time of a session's last call: RFC 3339. */
export const LAST_ACTIVITY = 'plat.dev/last-activity'

/** Milliseconds since the epoch; null for what is not a time. */
export function timeOf(text: string | undefined): number | null {
  const ms = Date.parse(text ?? '')
  return Number.isNaN(ms) ? null : ms
}

/**
 * Returns when a session that started at `startedAt` ends: after the shortest of its lifetime and the limits of its Agent and TrustTier.
 * Returns null without a limit. A lifetime of 0 means no limit.
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
