import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'

const nullable = Type.Union([Type.String(), Type.Null()])

/** Names of changed tools that a report carries (docs/spec/crds.md, `driftedTools`). */
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

export const serverSchema = Type.Object(serverProperties)

const toolProperties = {
  /** As the server names it. */
  tool: Type.String(),
  /** Of the definition that was last offered; null: none since the gateway started. */
  digest: nullable,
  standing: Type.Union([Type.Enum(['pinned', 'drifted', 'unpinned']), Type.Null()]),
  pins: Type.Array(Type.String()),
  source: Type.Union([Type.Enum(['resources', 'journal']), Type.Null()]),
}

const toolSchema = Type.Object(toolProperties)

export const detailSchema = Type.Object({
  ...serverProperties,
  onChange: Type.Enum(['hide', 'approve', 'alert']),
  allowUnpinned: Type.Boolean(),
  tools: Type.Array(toolSchema),
})

export const definitionsSchema = Type.Object({
  ...toolProperties,
  /** What the server offers now, in its canonical form (RFC 8785); null: nothing, or too long to be kept. */
  offered: nullable,
  /** The same of what it is held against, one for each of `pins`. */
  pinned: Type.Array(nullable),
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

/** One tool with the words of its definitions, as `GET /v1/pins/{namespace}/{name}/definition` shows it. */
export type ToolDefinitions = Static<typeof definitionsSchema>

/** For clients of the admin API: is this answer a tool with its definitions? */
export function isToolDefinitions(value: unknown): value is ToolDefinitions {
  return Check(definitionsSchema, value)
}
