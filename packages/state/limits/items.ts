import type { HoldItem } from './limits.ts'

/** Longest key, in characters: the ledger keeps it whole. */
const MAX_KEY_LENGTH = 1000

/** One item for each key and window. */
export function joined(items: readonly HoldItem[], more: readonly HoldItem[]): readonly HoldItem[] {
  const byName = new Map(items.map((item) => [nameOf(item), item]))
  for (const item of more) {
    const amount = (byName.get(nameOf(item))?.amount ?? 0) + item.amount
    byName.set(nameOf(item), { ...item, amount })
  }
  return [...byName.values()]
}

/** The same amount of the same key in the same window. */
export function sameItem(one: HoldItem, other: HoldItem | undefined): boolean {
  return nameOf(one) === (other === undefined ? null : nameOf(other)) && one.amount === other?.amount
}

/** A window that never ends needs no name beside its key: what is put together has to be hashed again at each look-up. */
export function nameOf({ key, window }: Pick<HoldItem, 'key' | 'window'>): string {
  if (window === 'life' && !key.includes('\n')) return key
  return `${key}\n${window}`
}

/** Of which key and window this is the name. */
export function partsOf(name: string): Pick<HoldItem, 'key' | 'window'> {
  const end = name.lastIndexOf('\n')
  return end < 0 ? { key: name, window: 'life' } : { key: name.slice(0, end), window: name.slice(end + 1) }
}

/** Throws RangeError for items that nobody can count. */
export function checkItems(items: readonly HoldItem[]): void {
  for (const item of items) {
    if (item.key.length > MAX_KEY_LENGTH) throw new RangeError(`key ${item.key.slice(0, 64)}… is too long`)
    checkAmount(item.amount, 'amount')
    checkAmount(item.cap, 'cap')
  }
  if (items.length > 1 && new Set(items.map(nameOf)).size !== items.length)
    throw new RangeError('an item names the same key and window as another')
}

/** Throws RangeError. */
export function checkAmount(amount: number, what: string): void {
  if (!Number.isSafeInteger(amount) || amount < 0)
    throw new RangeError(`${what} ${amount} is no whole number from 0 on`)
}

/** What each key of a hold has spent: what is told of it, or the whole. */
export function settledBy(items: readonly HoldItem[], actual: ReadonlyMap<string, number>): Map<string, number> {
  const settled = new Map<string, number>()
  for (const { key, amount } of items) {
    const spent = actual.get(key) ?? Math.max(settled.get(key) ?? 0, amount)
    checkAmount(spent, 'amount')
    settled.set(key, spent)
  }
  return settled
}
