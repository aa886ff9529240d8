import type { PoolCaller } from '@plat/core'
import { type JournalSpec, unknownEvent } from '@plat/state'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { agentOf } from '../facts.ts'

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
    /** Set if only this session of the agent owns it. */
    session: Type.Optional(Type.String()),
  },
  closed,
)

const sessionSchema = Type.Object({ namespace: Type.String(), agent: Type.String(), session: Type.String() }, closed)

const taskSchema = Type.Object(
  {
    /** The server as its caller names it, and its `target.key`. */
    server: Type.String(),
    target: Type.String(),
    tool: Type.String(),
    status: Type.String(),
    revision: Type.String(),
    /** The server's session in which it was created, sealed for its owner; absent: none. */
    session: Type.Optional(Type.String()),
    /** The owner's token with those that it derives from, and the sessions that it derives from: revoking one of them ends the task. */
    tokens: Type.Array(Type.String(), { minItems: 1 }),
    derivedFrom: Type.Array(sessionSchema),
  },
  closed,
)

/** A task of an MCP server. */
export type BoundTask = Static<typeof taskSchema>

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
      /** Absent for tasks and contexts of agents. */
      task: Type.Optional(taskSchema),
      /** Taint labels of content at a model provider; absent: none. */
      labels: Type.Optional(Type.Array(Type.String())),
    },
    closed,
  ),
  /** It no longer exists, or is forgotten. */
  Type.Object({ t: Type.Literal('released'), at: Type.Number() }, closed),
  /** A task of a server has another status. */
  Type.Object({ t: Type.Literal('status'), at: Type.Number(), status: Type.String() }, closed),
  /** A session of the owner sends a message into it; absent if the senders are unknown. */
  Type.Object({ t: Type.Literal('sent'), at: Type.Number(), session: Type.Optional(Type.String()) }, closed),
  Type.Object({ t: Type.Literal('used'), at: Type.Number() }, closed),
])

/** Owner of a task or context: an agent, for one user, with all its sessions or with one. */
export type Owner = Static<typeof ownerSchema>

/** An event of a task or context. The journal key is `<task or context>/<callee>/<id>`. */
export type BindingEvent = Static<typeof eventSchema>

/** Decodes an event of the journal. Throws for unknown kinds, so that no binding loses its owner. */
export function decodeBindingEvent(value: unknown): BindingEvent {
  if (Check(eventSchema, value)) return value
  throw unknownEvent('a binding event', value)
}

/** Returns the caller of events: agent and session of a new task, otherwise the task. */
export function ownerIn(key: string, [event]: readonly BindingEvent[]): PoolCaller {
  if (event?.t !== 'bound') return key
  const agent = agentOf(event.owner)
  return [agent, `${agent}/${event.sessions?.[0] ?? ''}`]
}

/** Returns the keys by which shares of bindings are counted: the agent, and the session if only that owns them. */
export function ownerKeys(owner: Owner): PoolCaller {
  const agent = agentOf(owner)
  return owner.session === undefined ? agent : [agent, `${agent}/${owner.session}`]
}

/** Names of journals of owners: `bindings` for tasks of agents, `tasks` for those of MCP servers, the others for content at model providers. */
export type BindingJournal = 'bindings' | 'tasks' | 'responses' | 'files'

/** A journal of owners, beside the ledger. */
export function bindingJournal(
  { auditPath }: { readonly auditPath: string },
  name: BindingJournal,
): JournalSpec<BindingEvent> {
  return { name, path: `${auditPath}.${name}.jsonl`, decode: decodeBindingEvent, callerOf: ownerIn }
}
