import { parseStrict } from '@plat/core'
import type { Resource } from '@plat/resources'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { keyOf } from '../render/declared.ts'
import type { PinReport } from '../status/pinned.ts'

/** The annotation with a gateway's report about a server's tools (docs/spec/crds.md, `observedTools`). */
export const PIN_REPORT = 'plat.dev/pin-report'

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

/** The report in a server's annotation; null if absent or invalid. */
export function pinReportOf(server: Resource<'MCPServer'>): PinReport | null {
  const text = server.metadata.annotations?.[PIN_REPORT]
  if (text === undefined) return null
  let value: unknown
  try {
    value = parseStrict(text)
  } catch {
    return null
  }
  if (!Value.Check(reportSchema, value)) return null
  const report: Static<typeof reportSchema> = value
  return { ...report, driftedTools: report.driftedTools.toSorted(), id: keyOf(server) }
}
