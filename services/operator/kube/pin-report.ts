import { parseStrict } from '@plat/core'
import type { Resource } from '@plat/resources'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { keyOf } from '../render/declared.ts'
import type { PinReport } from '../status/pinned.ts'

/** Annotations with reports about a server's tools (docs/spec/crds.md, `observedTools`): `plat.dev/pin-report.<replica>` of each gateway. */
const PIN_REPORT = 'plat.dev/pin-report'
/** Reports that are read of one server. */
const MAX_REPORTS = 64
/** A report that is older than the newest one by this time, in milliseconds, is of a replica that has gone. */
const STALE_MS = 24 * 3_600_000
/** Bound of the tool names (docs/spec/crds.md, `driftedTools`). */
const MAX_DRIFTED = 64

const count = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 })

/** Its content, as JSON. */
const reportSchema = Type.Object(
  {
    lastSeen: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?Z$' }),
    observedTools: count,
    driftedTools: Type.Array(Type.String({ maxLength: 512 }), { maxItems: 64 }),
    unpinnedTools: count,
  },
  { additionalProperties: false },
)

/**
 * Joins the reports of all gateways about a server; null if there is none. A tool has drifted if it has for one of them: callers can see
 * different lists.
 */
export function pinReportOf(server: Resource<'MCPServer'>): PinReport | null {
  const named = Object.entries(server.metadata.annotations ?? {}).filter(
    ([name]) => name === PIN_REPORT || name.startsWith(`${PIN_REPORT}.`),
  )
  const all = named.slice(0, MAX_REPORTS).flatMap(([, text]) => parsed(text) ?? [])
  const newest = Math.max(...all.map(({ lastSeen }) => Date.parse(lastSeen)))
  const [last, ...others] = all
    .filter(({ lastSeen }) => newest - Date.parse(lastSeen) <= STALE_MS)
    .toSorted((a, b) => Date.parse(b.lastSeen) - Date.parse(a.lastSeen))
  if (last === undefined) return null
  const reports = [last, ...others]
  return {
    id: keyOf(server),
    lastSeen: last.lastSeen,
    observedTools: Math.max(...reports.map(({ observedTools }) => observedTools)),
    driftedTools: [...new Set(reports.flatMap(({ driftedTools }) => driftedTools))].toSorted().slice(0, MAX_DRIFTED),
    unpinnedTools: Math.max(...reports.map(({ unpinnedTools }) => unpinnedTools)),
  }
}

function parsed(text: string): Static<typeof reportSchema> | null {
  let value: unknown
  try {
    value = parseStrict(text)
  } catch {
    return null
  }
  return Value.Check(reportSchema, value) && !Number.isNaN(Date.parse(value.lastSeen)) ? value : null
}
