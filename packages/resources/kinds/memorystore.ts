import { Type } from 'typebox'
import { closed, conditions, count, dlpProfile, longCount, oneOf } from './common.ts'

const { Optional } = Type

/** Tokens carry labels separated by spaces. `*` stands for every label, and is none itself. */
const TAINT_PATTERN = '^([!-)+-~]|[!-~][!-~]+)$'

export const MEMORY_DEFAULTS = { retentionDays: 30, maxItems: 1000, maxItemBytes: 8192 } as const

/** Fields of a MemoryStore, also used by `memoryFile`. */
export const memoryFields = () => ({
  scope: oneOf(
    ['agent', 'session', 'user'],
    'Who shares what is remembered: all sessions of an agent, one session alone, or all agents that act for the same user.',
  ),
  retentionDays: Optional(
    count('Days after the last write of an item when it is forgotten.', {
      minimum: 1,
      maximum: 3650,
      default: MEMORY_DEFAULTS.retentionDays,
    }),
  ),
  maxItems: Optional(
    count('Items of each agent, session or user.', { minimum: 1, maximum: 10_000, default: MEMORY_DEFAULTS.maxItems }),
  ),
  maxItemBytes: Optional(
    count('Bytes of the text of one item.', { minimum: 1, maximum: 65_536, default: MEMORY_DEFAULTS.maxItemBytes }),
  ),
  dlpProfile: Optional(dlpProfile()),
  taints: Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 64, pattern: TAINT_PATTERN }), {
      maxItems: 16,
      description: 'Labels of every session that reads from the store, beside those that its items have.',
    }),
  ),
})

export const memoryStoreSpecSchema = Type.Object(memoryFields(), closed)

export const memoryStoreStatusSchema = Type.Object(
  {
    conditions: Optional(conditions()),
    observedGeneration: Optional(longCount('Generation that the status was written for.')),
  },
  closed,
)
