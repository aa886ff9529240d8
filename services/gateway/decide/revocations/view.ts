import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'

/** An entry as CLI commands read it from the admin API. `source` is absent in the response to its creation. */
export const viewSchema = Type.Object({
  id: Type.String(),
  target: Type.Record(Type.String(), Type.Union([Type.String(), Type.Literal(true)])),
  mode: Type.Enum(['revoke', 'suspend']),
  reason: Type.String(),
  createdAt: Type.String(),
  expiresAt: Type.Union([Type.String(), Type.Null()]),
  source: Type.Optional(Type.Enum(['breakglass', 'file'])),
  /** Number of live calls that it ended; only in the response to its creation. */
  cut: Type.Optional(Type.Integer()),
})

export type RevocationView = Static<typeof viewSchema>

/** Preview of a revocation: calls and sessions on this gateway that it would end, beside further calls. */
export const previewViewSchema = Type.Object({
  /** Calls, streams and tunnels that would be aborted. */
  calls: Type.Object({
    total: Type.Integer(),
    /** Open streams and tunnels, which may be idle. */
    long: Type.Integer(),
  }),
  /** Tokens of these calls. */
  tokens: Type.Integer(),
  sessions: Type.Object({
    total: Type.Integer(),
    /** Sessions to which a revoked one has delegated, and forks of one: those with calls in progress are known. */
    delegated: Type.Integer(),
    forked: Type.Integer(),
    /** At most 100, those with the most calls in progress first. */
    items: Type.Array(
      Type.Object({
        id: Type.String(),
        user: Type.Union([Type.String(), Type.Null()]),
        relation: Type.Enum(['own', 'delegated', 'forked']),
        calls: Type.Integer(),
        pendingApprovals: Type.Integer(),
      }),
    ),
  }),
  /** Pending approvals that would be withdrawn. */
  pendingApprovals: Type.Integer(),
})

export type PreviewView = Static<typeof previewViewSchema>

/** Returns whether a value is a preview of a revocation. For clients of the admin API. */
export function isPreviewView(value: unknown): value is PreviewView {
  return Check(previewViewSchema, value)
}

/** Returns whether a value is a revocation. For clients of the admin API. */
export function isRevocationView(value: unknown): value is RevocationView {
  return Check(viewSchema, value)
}
