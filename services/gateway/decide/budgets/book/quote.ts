import type { Hold, HoldItem } from '@plat/state'
import { BudgetItem } from '../caps/budget.ts'

/** Hold that a request of a batch would have. Nothing is held: the call that creates the batch holds the sum. */
export class Quote implements Hold {
  readonly id: string
  readonly items: readonly HoldItem[]
  readonly settled = null

  constructor(id: string, items: readonly HoldItem[]) {
    this.id = id
    this.items = items
  }

  extend(): null {
    return null
  }

  settle(): void {}

  release(): void {}
}

/** The sum of what many requests would hold. */
export class QuoteSum {
  readonly #items = new Map<string, HoldItem>()

  add(items: readonly HoldItem[]): void {
    for (const item of items) {
      const name = `${item.key} ${item.window}`
      const before = this.#items.get(name)
      this.#items.set(name, before === undefined ? item : withAmount(item, before.amount + item.amount))
    }
  }

  get items(): readonly HoldItem[] {
    return [...this.#items.values()]
  }
}

function withAmount(item: HoldItem, amount: number): HoldItem {
  return item instanceof BudgetItem ? new BudgetItem(item, item.window, amount) : { ...item, amount }
}
