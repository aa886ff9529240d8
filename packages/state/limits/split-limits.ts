import type { PoolCaller } from '@plat/core'
import { type Hold, type HoldItem, isShort, type Limits, type Short } from './limits.ts'

export interface SplitLimitsOptions {
  /** Returns which keys are counted here. */
  readonly isOwn: (key: string) => boolean
  readonly own: Limits
  readonly others: Limits
}

/** Counts some keys here and the others elsewhere, all or nothing. */
export class SplitLimits implements Limits {
  readonly #options: SplitLimitsOptions

  constructor(options: SplitLimitsOptions) {
    this.#options = options
  }

  take(
    id: string,
    items: readonly HoldItem[],
    expiresAt: number,
    caller?: PoolCaller,
  ): Hold | Short | Promise<Hold | Short> {
    const { own, others } = this.#options
    const [here, there] = this.#split(items)
    if (there.length === 0) return own.take(id, here, expiresAt, caller)
    if (here.length === 0) return others.take(id, there, expiresAt, caller)
    return this.#both(own.take(id, here, expiresAt, caller), () => others.take(id, there, expiresAt, caller))
  }

  used(key: string, window: string): Promise<{ spent: number; held: number }> {
    const { isOwn, own, others } = this.#options
    return (isOwn(key) ? own : others).used(key, window)
  }

  now(): number {
    return this.#options.others.now()
  }

  async #both(
    first: Hold | Short | Promise<Hold | Short>,
    takeOthers: () => Hold | Short | Promise<Hold | Short>,
  ): Promise<Hold | Short> {
    const held = await first
    if (isShort(held)) return held
    try {
      const others = await takeOthers()
      if (!isShort(others)) return new SplitHold(held, others, (items) => this.#split(items))
      await held.release()
      return others
    } catch (error) {
      await held.release()
      throw error
    }
  }

  #split(items: readonly HoldItem[]): Split {
    const { isOwn } = this.#options
    return [items.filter(({ key }) => isOwn(key)), items.filter(({ key }) => !isOwn(key))]
  }
}

type Split = readonly [own: readonly HoldItem[], others: readonly HoldItem[]]

class SplitHold implements Hold {
  readonly #own: Hold
  readonly #others: Hold
  readonly #split: (items: readonly HoldItem[]) => Split

  constructor(own: Hold, others: Hold, split: (items: readonly HoldItem[]) => Split) {
    this.#own = own
    this.#others = others
    this.#split = split
  }

  get id(): string {
    return this.#own.id
  }

  get items(): readonly HoldItem[] {
    return [...this.#own.items, ...this.#others.items]
  }

  get settled(): ReadonlyMap<string, number> | null {
    const [own, others] = [this.#own.settled, this.#others.settled]
    return own === null || others === null ? null : new Map([...own, ...others])
  }

  /** Keys of one place only: an amount added in the other could not be taken back. */
  async extend(items: readonly HoldItem[]): Promise<Short | null> {
    const [own, others] = this.#split(items)
    if (own.length > 0 && others.length > 0) throw new RangeError('a hold grows by keys that are counted in one place')
    return own.length > 0 ? this.#own.extend(own) : this.#others.extend(others)
  }

  async settle(actual: ReadonlyMap<string, number>): Promise<void> {
    const counted = this.#others.settle(actual)
    await this.#own.settle(actual)
    await counted
  }

  async release(): Promise<void> {
    const counted = this.#others.release()
    await this.#own.release()
    await counted
  }
}
