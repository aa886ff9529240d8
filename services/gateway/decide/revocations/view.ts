import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'

/** What the commands of people need of an entry, as the admin API shows it; `source` is missing where it was just made. */
export const viewSchema = Type.Object({
  id: Type.String(),
  target: Type.Record(Type.String(), Type.Union([Type.String(), Type.Literal(true)])),
  mode: Type.Enum(['revoke', 'suspend']),
  reason: Type.String(),
  createdAt: Type.String(),
  expiresAt: Type.Union([Type.String(), Type.Null()]),
  source: Type.Optional(Type.Enum(['breakglass', 'file'])),
  /** Live calls that it ended; only where it was just made. */
  cut: Type.Optional(Type.Integer()),
})

export type RevocationView = Static<typeof viewSchema>

/** For clients of the admin API: is this answer a revocation? */
export function isRevocationView(value: unknown): value is RevocationView {
  return Check(viewSchema, value)
}
