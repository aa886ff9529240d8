import { type JournalSpec, unknownEvent } from '@plat/state'
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
    /** The reporter. */
    by: Type.String(),
    /** The gateway that accepted it, whose ledger has the records. */
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

/** An accepted report: from then on it counts exactly once, at the price of that moment. */
export type Claim = Static<typeof claimSchema>
/** Journal `usage`, by session: `claimed` before the charge, `counted` once recorded in the ledger, `kept` after a compaction. */
export type UsageEvent = Static<typeof eventSchema>

/** Throws for an event unknown to this version. */
export function decodeUsageEvent(event: unknown): UsageEvent {
  if (Check(eventSchema, event)) return event
  throw unknownEvent('an event of sandbox usage', event)
}

/** The journal of usage reports. */
export function usageJournal({ auditPath }: { readonly auditPath: string }): JournalSpec<UsageEvent> {
  return { name: 'usage', path: `${auditPath}.usage.jsonl`, decode: decodeUsageEvent }
}
