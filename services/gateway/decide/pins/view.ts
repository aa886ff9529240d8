import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'

const nullable = Type.Union([Type.String(), Type.Null()])

/** Bound of the tool names in a report (docs/spec/crds.md, `driftedTools`). */
export const DRIFTED_MAX = 64

const serverProperties = {
  /** `<namespace>/<name>`. */
  id: Type.String(),
  mode: Type.Enum(['learn', 'enforce']),
  /** RFC 3339 time when its tools were last listed; null: not since the gateway started. */
  lastSeen: nullable,
  /** Number of tools offered since the gateway started. */
  observedTools: Type.Integer(),
  /** Offered tools that differ from every pin; sorted. */
  driftedTools: Type.Array(Type.String(), { maxItems: DRIFTED_MAX }),
  /** Number of offered tools without a pin. */
  unpinnedTools: Type.Integer(),
}

export const serverSchema = Type.Object(serverProperties)

const toolProperties = {
  /** Name given by the server. */
  tool: Type.String(),
  /** Digest of the definition offered last; null: none since the gateway started. */
  digest: nullable,
  standing: Type.Union([Type.Enum(['pinned', 'drifted', 'unpinned']), Type.Null()]),
  pins: Type.Array(Type.String()),
  source: Type.Union([Type.Enum(['resources', 'journal']), Type.Null()]),
  /** A person rejected the definition offered last: it is hidden and refused in every mode. */
  rejected: Type.Boolean(),
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
  /** Canonical form (RFC 8785) of the definition offered now; null: none, or too long to store. */
  offered: nullable,
  /** Canonical forms of the pinned definitions, one for each of `pins`. */
  pinned: Type.Array(nullable),
})

/** Pin state of one server, as in `GET /v1/pins`. */
export type ServerPins = Static<typeof serverSchema>

/** Pin state of one server with its tools, as in `GET /v1/pins/{namespace}/{name}`. */
export type ServerPinsDetail = Static<typeof detailSchema>

export type ToolPinView = Static<typeof toolSchema>

/** Returns whether a value is an item of the list. For clients of the admin API. */
export function isServerPins(value: unknown): value is ServerPins {
  return Check(serverSchema, value)
}

/** Returns whether a value is one server with its tools. For clients of the admin API. */
export function isServerPinsDetail(value: unknown): value is ServerPinsDetail {
  return Check(detailSchema, value)
}

/** One tool with its definitions, as in `GET /v1/pins/{namespace}/{name}/definition`. */
export type ToolDefinitions = Static<typeof definitionsSchema>

/** Returns whether a value is a tool with its definitions. For clients of the admin API. */
export function isToolDefinitions(value: unknown): value is ToolDefinitions {
  return Check(definitionsSchema, value)
}
