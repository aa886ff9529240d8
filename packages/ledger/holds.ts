import { isObject } from '@plat/core'
import type { HoldItem } from '@plat/state'

/** Returns the items that an intent records as held; empty when it holds nothing. */
export function holdsOf(rec: Readonly<Record<string, unknown>>): readonly HoldItem[] {
  return Array.isArray(rec.holds) ? rec.holds.filter(isItem) : []
}

/** Returns the amounts that an outcome records as spent, by key; null when it has none. */
export function settledOf(rec: Readonly<Record<string, unknown>>): ReadonlyMap<string, number> | null {
  if (!isObject(rec.settled)) return null
  const settled = new Map<string, number>()
  for (const [key, amount] of Object.entries(rec.settled)) if (typeof amount === 'number') settled.set(key, amount)
  return settled
}

function isItem(value: unknown): value is HoldItem {
  if (!isObject(value)) return false
  const { key, window, cap, amount, unit } = value
  const texts = typeof key === 'string' && typeof window === 'string' && typeof unit === 'string'
  return texts && typeof cap === 'number' && typeof amount === 'number'
}
