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

/** Returns whether a value is a revocation. For clients of the admin API. */
export function isRevocationView(value: unknown): value is RevocationView {
  return Check(viewSchema, value)
}
