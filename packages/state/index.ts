export type { Journal, JournalEntry } from './journal.ts'
export type { Hold, HoldItem, Limits, Short } from './limits.ts'
