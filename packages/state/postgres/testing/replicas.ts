import { type Clock, type SharedPool, systemClock, systemIds } from '@plat/core'
import type { TestPostgres } from '@plat/testkit/postgres/server'
import type { Client } from 'pg'
import type { Sample } from '../../journal.conformance.ts'
import type { OpenJournal } from '../../journal.ts'
import { type Hold, type HoldItem, isShort, type Limits } from '../../limits/limits.ts'
import { openPostgresState } from '../../postgres-state.ts'
import type { PostgresState } from '../state.ts'

export const ids = systemIds(systemClock)

/** A timer that no test reaches, in milliseconds. */
export const NEVER = 2_000_000_000

export interface ReplicaOptions {
  /** Default: that of the server. */
  readonly dsn?: string
  readonly startWaitMs?: number
  readonly schema?: string
  readonly clock?: Clock
  readonly pollMs?: number
  readonly retryMs?: number
  readonly maxConnections?: number
  readonly seenPath?: string
  readonly queued?: SharedPool
  readonly requests?: SharedPool
  readonly queuedKeys?: SharedPool
  readonly onLead?: (job: string, leads: boolean) => void
  readonly onLost?: (lost: string | null) => void
}

/** Replicas in this process that share one server. */
export class Replicas {
  readonly warned: string[] = []
  readonly #postgres: TestPostgres
  readonly #open = new Set<PostgresState>()

  constructor(postgres: TestPostgres) {
    this.#postgres = postgres
    postgres.beforeClose(() => this.close(...this.#open))
  }

  async open({ schema = 'plat', ...options }: ReplicaOptions = {}): Promise<PostgresState> {
    const state = await openPostgresState({
      dsn: this.#postgres.dsn,
      schema,
      maxConnections: 4,
      pollMs: 100,
      retryMs: 100,
      clock: systemClock,
      ids,
      warn: (message) => void this.warned.push(message),
      onLead() {},
      onLost() {},
      seenPath: '',
      ...options,
    })
    this.#open.add(state)
    return state
  }

  async close(...states: readonly PostgresState[]): Promise<void> {
    for (const state of states) {
      this.#open.delete(state)
      await state.close()
    }
  }
}

function decode(event: unknown): Sample {
  const known = typeof event === 'object' && event !== null && 't' in event && event.t === 'sample' && 'n' in event
  if (!known || typeof event.n !== 'number') throw new Error('unknown event')
  return { t: 'sample', n: event.n }
}

export const sample = (n: number): Sample => ({ t: 'sample', n })

export function journalOf(state: PostgresState, name: string): Promise<OpenJournal<Sample>> {
  return state.journals.open({ name, path: '', decode })
}

/** Appends as a replica does, and resolves with the result. */
export async function appendBeside(
  client: Client,
  journal: string,
  n: number,
  attempt = ids.uuid(),
): Promise<unknown[]> {
  const events = [JSON.stringify(sample(n))]
  const { rows } = await client.query('SELECT * FROM plat.append($1, $2, $3, NULL, 0, $4)', [
    journal,
    'a',
    events,
    attempt,
  ])
  return rows
}

export const item = (key: string, cap: number, amount: number, window = 'life'): HoldItem => ({
  key,
  window,
  cap,
  amount,
  unit: 'micros',
})

export async function takeHold(limits: Limits, key: string, amount: number): Promise<Hold> {
  const result = await limits.take(ids.uuid(), [item(key, 1000, amount)], limits.now() + NEVER)
  if (isShort(result)) throw new Error(`short of ${key}`)
  return result
}
