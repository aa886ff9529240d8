import type { PoolCaller } from '@plat/core'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { agentOf } from '../../../call/index.ts'

const closed = { additionalProperties: false } as const

const ownerSchema = Type.Object(
  {
    tenant: Type.String(),
    namespace: Type.String({ minLength: 1 }),
    agent: Type.String({ minLength: 1 }),
    /** Null if the owner's sessions act for no user. */
    user: Type.Union([Type.String(), Type.Null()]),
    /** Issuer of the owner's tokens; absent in events of older versions. */
    issuer: Type.Optional(Type.String()),
  },
  closed,
)

const eventSchema = Type.Union([
  /** `call` is the one whose response contained it; times in milliseconds since the epoch. */
  Type.Object(
    {
      t: Type.Literal('bound'),
      at: Type.Number(),
      owner: ownerSchema,
      call: Type.String(),
      /** Sessions of the owner that sent the cause; absent if there are too many, or in events of older versions. */
      sessions: Type.Optional(Type.Array(Type.String())),
    },
    closed,
  ),
  /** A session of the owner sends a message into it; absent if the senders are unknown. */
  Type.Object({ t: Type.Literal('sent'), at: Type.Number(), session: Type.Optional(Type.String()) }, closed),
  Type.Object({ t: Type.Literal('used'), at: Type.Number() }, closed),
])

/** Owner of a task or context: an agent, for one user. Any session of both may continue it. */
export type Owner = Static<typeof ownerSchema>

/** An event of a task or context. The journal key is `<task or context>/<ns>/<agent>/<id>`. */
export type BindingEvent = Static<typeof eventSchema>

/** Decodes an event of the journal. Throws for unknown kinds, so that no binding loses its owner. */
export function decodeBindingEvent(value: unknown): BindingEvent {
  if (Check(eventSchema, value)) return value
  const t = typeof value === 'object' && value !== null && 't' in value ? String(value.t) : 'none'
  throw new Error(`a binding event of kind ${JSON.stringify(t)} is not known to this version`)
}

/** Returns the caller of events: agent and session of a new task, otherwise the task. */
export function ownerIn(key: string, [event]: readonly BindingEvent[]): PoolCaller {
  if (event?.t !== 'bound') return key
  const agent = agentOf(event.owner)
  return [agent, `${agent}/${event.sessions?.[0] ?? ''}`]
}
