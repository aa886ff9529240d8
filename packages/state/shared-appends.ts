import type { PoolCaller, SharedPool } from '@plat/core'
import type { Journal, JournalEntry, OpenJournal } from './journal.ts'
import type { JournalSpec, Journals } from './journals.ts'
import { PoolFullError } from './limits/limits.ts'

/**
 * Returns the same journals, whose pending appends are counted for their callers in `pool` (`journal_appends`). An append beyond a share rejects with
 * PoolFullError, and nothing is written. Journals without `callerOf` are not counted.
 */
export function withShares(journals: Journals, pool: SharedPool): Journals {
  return {
    shared: journals.shared,
    catchUp: journals.catchUp,
    async open<E>(spec: JournalSpec<E>): Promise<OpenJournal<E>> {
      const journal = await journals.open(spec)
      const { name, callerOf } = spec
      if (callerOf === undefined) return journal
      return countedJournal(journal, pool, (key, events) => within(name, callerOf(key, events)))
    },
  }
}

/** Returns the same journal, whose pending appends are counted for their callers. */
export function countedJournal<E>(
  journal: OpenJournal<E>,
  pool: SharedPool,
  callerOf: (key: string, events: readonly E[]) => PoolCaller,
): OpenJournal<E> {
  return new CountedJournal(journal, pool, callerOf)
}

/** A caller has separate shares in each journal. */
function within(journal: string, caller: PoolCaller): PoolCaller {
  const levels = typeof caller === 'string' ? [caller, caller] : caller
  return levels.map((level) => `${journal} ${level}`)
}

class CountedJournal<E> implements OpenJournal<E> {
  readonly #journal: OpenJournal<E>
  readonly #pool: SharedPool
  readonly #callerOf: (key: string, events: readonly E[]) => PoolCaller

  constructor(journal: OpenJournal<E>, pool: SharedPool, callerOf: (key: string, events: readonly E[]) => PoolCaller) {
    this.#journal = journal
    this.#pool = pool
    this.#callerOf = callerOf
  }

  get health(): Journal<E>['health'] {
    return this.#journal.health
  }

  async append(key: string, events: readonly E[], onlyIf?: number): Promise<number | 'conflict'> {
    const caller = this.#callerOf(key, events)
    const bound = this.#pool.acquire(caller)
    if (bound !== null) throw new PoolFullError('appends to a journal are pending', bound)
    try {
      return await this.#journal.append(key, events, onlyIf)
    } finally {
      this.#pool.release(caller)
    }
  }

  read(after: number): ReturnType<Journal<E>['read']> {
    return this.#journal.read(after)
  }

  follow(...following: Parameters<Journal<E>['follow']>): Promise<void> {
    return this.#journal.follow(...following)
  }

  compact(upTo: number, snapshot: readonly Omit<JournalEntry<E>, 'seq'>[]): Promise<void> {
    return this.#journal.compact(upTo, snapshot)
  }

  close(): Promise<void> {
    return this.#journal.close()
  }
}
