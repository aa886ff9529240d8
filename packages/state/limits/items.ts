import type { HoldItem } from './limits.ts'

/** Maximum key length in characters: the ledger stores keys in full. */
const MAX_KEY_LENGTH = 1000

/** Merges items to one for each key and window. */
export function joined(items: readonly HoldItem[], more: readonly HoldItem[]): readonly HoldItem[] {
  const byName = new Map(items.map((item) => [nameOf(item), item]))
  for (const item of more) {
    const amount = (byName.get(nameOf(item))?.amount ?? 0) + item.amount
    byName.set(nameOf(item), { ...item, amount })
  }
  return [...byName.values()]
}

/** Returns whether key, window and amount are equal. */
export function sameItem(one: HoldItem, other: HoldItem | undefined): boolean {
  return nameOf(one) === (other === undefined ? null : nameOf(other)) && one.amount === other?.amount
}

/** Returns the map key. A window that never ends is omitted: a concatenated string has to be hashed again at each look-up. */
export function nameOf({ key, window }: Pick<HoldItem, 'key' | 'window'>): string {
  if (window === 'life' && !key.includes('\n')) return key
  return `${key}\n${window}`
}

/** Returns the key and window of a map key. */
export function partsOf(name: string): Pick<HoldItem, 'key' | 'window'> {
  const end = name.lastIndexOf('\n')
  return end < 0 ? { key: name, window: 'life' } : { key: name.slice(0, end), window: name.slice(end + 1) }
}

/** Throws RangeError on invalid items. */
export function checkItems(items: readonly HoldItem[]): void {
  for (const item of items) {
    if (item.key.length > MAX_KEY_LENGTH) throw new RangeError(`key ${item.key.slice(0, 64)}… is too long`)
    checkAmount(item.amount, 'amount')
    checkAmount(item.cap, 'cap')
  }
  if (items.length > 1 && new Set(items.map(nameOf)).size !== items.length)
    throw new RangeError('an item names the same key and window as another')
}

/** Throws RangeError unless the amount is a whole number from 0 on. */
export function checkAmount(amount: number, what: string): void {
  if (!Number.isSafeInteger(amount) || amount < 0)
    throw new RangeError(`${what} ${amount} is not a whole number from 0 on`)
}

/** Returns the amount spent of each key of a hold: the reported one, or the whole. */
export function settledBy(items: readonly HoldItem[], actual: ReadonlyMap<string, number>): Map<string, number> {
  const settled = new Map<string, number>()
  for (const { key, amount } of items) {
    const spent = actual.get(key) ?? Math.max(settled.get(key) ?? 0, amount)
    checkAmount(spent, 'amount')
    settled.set(key, spent)
  }
  return settled
}
