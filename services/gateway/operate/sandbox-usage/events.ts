import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'

const closed = { additionalProperties: false } as const
const whole = () => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

const claimSchema = Type.Object(
  {
    id: Type.String(),
    /** `call` of its records. */
    call: Type.String(),
    digest: Type.String(),
    from: whole(),
    to: whole(),
    cpuMs: whole(),
    memoryByteSeconds: whole(),
    gpuMs: whole(),
    /** Who reported. */
    by: Type.String(),
    /** The gateway that took it, in whose ledger it stands. */
    replica: Type.String(),
    at: whole(),
    user: Type.Union([Type.String(), Type.Null()]),
    groups: Type.Array(Type.String()),
    costMicros: whole(),
    currency: Type.String(),
    priceId: Type.String(),
    counted: Type.Boolean(),
  },
  closed,
)

const eventSchema = Type.Union([
  Type.Object({ t: Type.Literal('claimed'), claim: claimSchema }, closed),
  Type.Object({ t: Type.Literal('counted'), id: Type.String() }, closed),
  Type.Object({ t: Type.Literal('kept'), floor: whole(), claims: Type.Array(claimSchema) }, closed),
])

/** A report that a gateway has taken: from then on it counts, and once. Its price is that of the moment. */
export type Claim = Static<typeof claimSchema>
/** Journal `usage`, by session: `claimed` before anything is charged, `counted` once the ledger has it, `kept` after a compaction. */
export type UsageEvent = Static<typeof eventSchema>

/** Throws for an event that this version does not know. */
export function decodeUsageEvent(event: unknown): UsageEvent {
  if (Check(eventSchema, event)) return event
  throw new Error('an event of sandbox usage that this version does not know')
}
