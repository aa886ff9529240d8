import { type Clock, type Ids, rfc3339 } from '@plat/core'
import type { Ledger } from '../types.ts'
import {
  type HoldTarget,
  type LegalHold,
  MAX_LEGAL_HOLDS,
  readLegalHolds,
  textOfTarget,
  writeLegalHolds,
} from './legal-holds.ts'

export interface HoldKeeperOptions {
  readonly ledgerPath: string
  readonly ledger: Pick<Ledger, 'append'>
  readonly clock: Clock
  readonly ids: Pick<Ids, 'uuid'>
}

/** There are `MAX_LEGAL_HOLDS` already. */
export class TooManyHoldsError extends Error {}

/** Makes and releases the legal holds of a ledger, one change at a time, and records them. Caller must be the only writer of the ledger. */
export class HoldKeeper {
  readonly #options: HoldKeeperOptions
  #running: Promise<unknown> = Promise.resolve()

  constructor(options: HoldKeeperOptions) {
    this.#options = options
  }

  /** In force and recorded when it resolves. If it cannot be recorded, it is in force all the same. */
  add(target: HoldTarget, by: string, reason: string): Promise<LegalHold> {
    return this.#queued(async (holds) => {
      const { ledgerPath, ledger, clock, ids } = this.#options
      if (holds.length >= MAX_LEGAL_HOLDS) {
        throw new TooManyHoldsError(`there are ${MAX_LEGAL_HOLDS} legal holds already: release one first`)
      }
      const hold = { id: ids.uuid(), at: rfc3339(clock.now()), by, reason, target }
      await writeLegalHolds(ledgerPath, [...holds, hold])
      await ledger.append({ kind: 'admin', action: 'hold.made', by, id: hold.id, target: textOfTarget(target), reason })
      return hold
    })
  }

  /** Recorded before it is released. Returns false if there is no hold of this id. */
  release(id: string, by: string): Promise<boolean> {
    return this.#queued(async (holds) => {
      const { ledgerPath, ledger } = this.#options
      const hold = holds.find((one) => one.id === id)
      if (hold === undefined) return false
      await ledger.append({ kind: 'admin', action: 'hold.released', by, id, target: textOfTarget(hold.target) })
      await writeLegalHolds(
        ledgerPath,
        holds.filter((one) => one !== hold),
      )
      return true
    })
  }

  /** Runs work during which no hold is made or released. Holds that were made before are in force for it. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#running.then(work)
    this.#running = done.catch(() => {})
    return done
  }

  #queued<T>(change: (holds: readonly LegalHold[]) => Promise<T>): Promise<T> {
    return this.exclusively(async () => await change(await readLegalHolds(this.#options.ledgerPath)))
  }
}
