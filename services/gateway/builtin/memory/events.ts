import { type Static, Type } from 'typebox'
import { Check } from 'typebox/value'
import type { Owner } from './owner.ts'

const closed = { additionalProperties: false } as const
const label = Type.String({ minLength: 1 })

const eventSchema = Type.Union([
  Type.Object(
    {
      t: Type.Literal('written'),
      /** Milliseconds since the epoch. */
      at: Type.Number(),
      /** When it is forgotten where its store says nothing any more, likewise. */
      keepUntil: Type.Number(),
      text: Type.String(),
      /** Labels of the session that wrote it, by then. */
      taints: Type.Array(label),
      /** Who wrote it; `person` as `personOf` names it, null: for nobody. */
      by: Type.Object(
        { agent: Type.String(), session: Type.String(), person: Type.Union([Type.String(), Type.Null()]) },
        closed,
      ),
    },
    closed,
  ),
  Type.Object({ t: Type.Literal('removed') }, closed),
])

/** What happened to one item. */
export type MemoryEvent = Static<typeof eventSchema>
export type Written = Extract<MemoryEvent, { t: 'written' }>

/** Reads an event from the journal. Throws for one that this version does not know. */
export function decodeMemoryEvent(value: unknown): MemoryEvent {
  if (Check(eventSchema, value)) return value
  const t = typeof value === 'object' && value !== null && 't' in value ? String(value.t) : 'none'
  throw new Error(`a memory event of kind ${JSON.stringify(t)} is not known in this version`)
}

const keySchema = Type.Tuple([
  Type.String(),
  Type.String(),
  Type.String(),
  Type.Enum(['agent', 'session', 'user']),
  Type.String(),
  Type.String(),
])

/** The journal's key of an item. */
export function journalKey({ tenant, namespace, store, scope, who }: Owner, key: string): string {
  return JSON.stringify([tenant, namespace, store, scope, who, key])
}

/** Throws for what is none. */
export function readJournalKey(text: string): { readonly owner: Owner; readonly key: string } {
  const parts: unknown = JSON.parse(text)
  if (!Check(keySchema, parts)) throw new Error('the journal of memory has a key that this version does not know')
  const [tenant, namespace, store, scope, who, key] = parts
  return { owner: { tenant, namespace, store, scope, who }, key }
}
