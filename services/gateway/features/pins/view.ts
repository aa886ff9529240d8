import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'

const nullable = Type.Union([Type.String(), Type.Null()])

/** Names of changed tools that a report carries (document 2, `driftedTools`). */
export const DRIFTED_MAX = 64

const serverProperties = {
  /** `<namespace>/<name>`. */
  id: Type.String(),
  mode: Type.Enum(['learn', 'enforce']),
  /** RFC 3339, when anybody was last offered its tools; null: not since the gateway started. */
  lastSeen: nullable,
  /** Tools that were offered since the gateway started. */
  observedTools: Type.Integer(),
  /** Those of them that differ from every pin; sorted. */
  driftedTools: Type.Array(Type.String(), { maxItems: DRIFTED_MAX }),
  /** How many of them have no pin. */
  unpinnedTools: Type.Integer(),
}

const serverSchema = Type.Object(serverProperties)

const toolSchema = Type.Object({
  tool: Type.String(),
  /** Of the definition that was last offered; null: none since the gateway started. */
  digest: nullable,
  standing: Type.Union([Type.Enum(['pinned', 'drifted', 'unpinned']), Type.Null()]),
  pins: Type.Array(Type.String()),
  source: Type.Union([Type.Enum(['resources', 'journal']), Type.Null()]),
})

const detailSchema = Type.Object({
  ...serverProperties,
  onChange: Type.Enum(['hide', 'approve', 'alert']),
  allowUnpinned: Type.Boolean(),
  tools: Type.Array(toolSchema),
})

/** How the tools of one server stand, as `GET /v1/pins` lists it. */
export type ServerPins = Static<typeof serverSchema>

/** The same with each tool, as `GET /v1/pins/{namespace}/{name}` shows it. */
export type ServerPinsDetail = Static<typeof detailSchema>

export type ToolPinView = Static<typeof toolSchema>

/** For clients of the admin API: is this answer an item of the list? */
export function isServerPins(value: unknown): value is ServerPins {
  return Check(serverSchema, value)
}

/** For clients of the admin API: is this answer one server with its tools? */
export function isServerPinsDetail(value: unknown): value is ServerPinsDetail {
  return Check(detailSchema, value)
}
