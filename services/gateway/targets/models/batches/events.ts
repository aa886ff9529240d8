import { type JournalSpec, unknownEvent } from '@plat/state'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { agentOf } from '../../../call/index.ts'

const closed = { additionalProperties: false } as const
const whole = () => Type.Integer({ minimum: 0 })
const orNull = () => Type.Union([Type.String(), Type.Null()])

const batchSchema = Type.Object(
  {
    account: Type.String(),
    id: Type.String(),
    /** Milliseconds since the epoch. */
    at: Type.Number(),
    /** The call that created it, with its token. */
    call: Type.String(),
    jti: Type.String(),
    tenant: Type.String(),
    namespace: Type.String(),
    agent: Type.String(),
    session: Type.String(),
    user: orNull(),
    route: Type.String(),
    server: Type.String(),
    model: Type.String(),
    priced: Type.Object({ key: Type.String(), scopes: Type.Array(Type.String()) }, closed),
    options: Type.Array(Type.String()),
    requests: whole(),
    sha256: Type.String(),
    labels: Type.Array(Type.String()),
    holds: Type.Array(
      Type.Object(
        {
          key: Type.String(),
          window: Type.String(),
          amount: whole(),
          unit: Type.Enum(['micros', 'tokens'], { type: 'string' }),
        },
        closed,
      ),
    ),
  },
  closed,
)

/** A batch at a provider, with what was held for it. */
export type StoredBatch = Static<typeof batchSchema>

const usageSchema = Type.Object(
  { prompt: whole(), completion: whole(), cachedRead: whole(), cachedWrite: whole(), reasoning: whole() },
  closed,
)

const usedSchema = Type.Object(
  {
    /** Null: not known. Then everything that was held counts as spent. */
    usage: Type.Union([usageSchema, Type.Null()]),
    costMicros: whole(),
  },
  closed,
)

/** Use of a batch. */
export type BatchUsed = Static<typeof usedSchema>

const eventSchema = Type.Union([
  Type.Object(
    {
      t: Type.Literal('created'),
      batch: batchSchema,
      files: Type.Optional(Type.Array(Type.String(), { maxItems: 2 })),
    },
    closed,
  ),
  /** The provider named the files of the results. */
  Type.Object({ t: Type.Literal('results'), files: Type.Array(Type.String(), { maxItems: 2 }) }, closed),
  /** A gateway has begun to settle it. */
  Type.Object({ t: Type.Literal('settling'), at: Type.Number(), replica: Type.String(), used: usedSchema }, closed),
  Type.Object({ t: Type.Literal('settled') }, closed),
])

/** An event of a batch. The journal key is its account and id. */
export type BatchEvent = Static<typeof eventSchema>

/** Decodes an event of the journal. Throws for unknown kinds, so that no hold is lost. */
export function decodeBatchEvent(value: unknown): BatchEvent {
  if (Check(eventSchema, value)) return value
  throw unknownEvent('an event of a batch', value)
}

/** The journal of batches at providers. */
export function batchesJournal({ auditPath }: { readonly auditPath: string }): JournalSpec<BatchEvent> {
  return {
    name: 'batches',
    path: `${auditPath}.batches.jsonl`,
    decode: decodeBatchEvent,
    callerOf: (key, [event]) =>
      event?.t === 'created' ? [agentOf(event.batch), `${agentOf(event.batch)}/${event.batch.session}`] : key,
  }
}
