import path from 'node:path'
import type { PoolCaller } from '@plat/core'
import { type JournalSpec, unknownEvent } from '@plat/state'
import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import { agentOf } from '../../call/index.ts'
import type { Owner } from './owner.ts'

const closed = { additionalProperties: false } as const
const label = Type.String({ minLength: 1 })

const eventSchema = Type.Union([
  Type.Object(
    {
      t: Type.Literal('written'),
      /** Milliseconds since the epoch. */
      at: Type.Number(),
      /** Expiration if the store no longer defines one, in milliseconds since the epoch. */
      keepUntil: Type.Number(),
      text: Type.String(),
      /** Labels of the writing session at that time. */
      taints: Type.Array(label),
      /** The writer; `person` as returned by `personOf`, or null. */
      by: Type.Object(
        { agent: Type.String(), session: Type.String(), person: Type.Union([Type.String(), Type.Null()]) },
        closed,
      ),
    },
    closed,
  ),
  Type.Object({ t: Type.Literal('removed') }, closed),
])

/** An event of one item. */
export type MemoryEvent = Static<typeof eventSchema>
export type Written = Extract<MemoryEvent, { t: 'written' }>

/** Decodes an event of the journal. Throws for kinds unknown to this version. */
export function decodeMemoryEvent(value: unknown): MemoryEvent {
  if (Check(eventSchema, value)) return value
  throw unknownEvent('a memory event', value)
}

const keySchema = Type.Tuple([
  Type.String(),
  Type.String(),
  Type.String(),
  Type.Enum(['agent', 'session', 'user']),
  Type.String(),
  Type.String(),
])

export function journalKey({ tenant, namespace, store, scope, who }: Owner, key: string): string {
  return JSON.stringify([tenant, namespace, store, scope, who, key])
}

/** Throws for invalid keys. */
export function readJournalKey(text: string): { readonly owner: Owner; readonly key: string } {
  const parts: unknown = JSON.parse(text)
  if (!Check(keySchema, parts)) throw new Error('the journal of memory has a key that is not known to this version')
  const [tenant, namespace, store, scope, who, key] = parts
  return { owner: { tenant, namespace, store, scope, who }, key }
}

/** Returns the caller of events: agent and session of a written item, otherwise the item. */
export function writerOf(key: string, [event]: readonly MemoryEvent[]): PoolCaller {
  if (event?.t !== 'written') return key
  const { tenant, namespace } = readJournalKey(key).owner
  const agent = agentOf({ tenant, namespace, agent: event.by.agent })
  return [agent, `${agent}/${event.by.session}`]
}

/** The journal of the memory server. */
export function memoryJournal({
  memoryDataDir,
  auditPath,
}: {
  readonly memoryDataDir: string
  readonly auditPath: string
}): JournalSpec<MemoryEvent> {
  const dir = memoryDataDir || path.join(path.dirname(auditPath), 'memory')
  return { name: 'memory', path: path.join(dir, 'memory.jsonl'), decode: decodeMemoryEvent, callerOf: writerOf }
}
