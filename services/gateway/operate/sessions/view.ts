import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'

/** Response shape of `/v1/sessions`: one session, with its taints and pending approvals. */
const viewSchema = Type.Object({
  /** `<namespace>/<agent>/<session>`. */
  id: Type.String(),
  namespace: Type.String(),
  agent: Type.String(),
  session: Type.String(),
  user: Type.Union([Type.String(), Type.Null()]),
  tier: Type.String(),
  /** RFC 3339. */
  startedAt: Type.String(),
  lastActivity: Type.String(),
  calls: Type.Integer(),
  denied: Type.Integer(),
  pendingApprovals: Type.Integer(),
  /** Labels of the session. */
  taints: Type.ReadonlyType(Type.Array(Type.String())),
  /** How the caller may view its browser; a gateway without views leaves it out. */
  views: Type.Optional(Type.ReadonlyType(Type.Array(Type.Enum(['watch', 'control'])))),
  /** Millionths of a currency (ISO 4217). */
  spent: Type.Object({ micros: Type.Integer(), currency: Type.String() }),
})

export type SessionView = Static<typeof viewSchema>

/** Returns whether a value is a session. For clients of the admin API. */
export function isSessionView(value: unknown): value is SessionView {
  return Check(viewSchema, value)
}
