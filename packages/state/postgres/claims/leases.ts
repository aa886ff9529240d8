import type { Clock, Ids } from '@plat/core'
import type { Leases } from '../../lease/lease.ts'
import { type Database, storedText } from '../database.ts'

/** Leases that every replica shares. They end by the clock of the database. */
export function postgresLeases(
  database: Database,
  { clock, ids }: { readonly clock: Clock; readonly ids: Ids },
): Leases {
  const table = `${database.schema}.lease`
  return {
    async acquire(name, ttlMs) {
      const holder = ids.uuid()
      const stored = storedText(name)
      const requestedAt = clock.monotonic()
      const rows = await database.again(
        `INSERT INTO ${table} AS old (name, holder, until)
           VALUES ($1, $2, clock_timestamp() + $3 * interval '1 ms')
           ON CONFLICT (name) DO UPDATE SET holder = EXCLUDED.holder, until = EXCLUDED.until
             WHERE old.until <= clock_timestamp() OR old.holder = EXCLUDED.holder
           RETURNING 1`,
        [stored, holder, ttlMs],
      )
      if (rows.length === 0) return null
      return {
        leftMs: () => requestedAt + ttlMs - clock.monotonic(),
        async release() {
          const remove = `DELETE FROM ${table} WHERE name = $1 AND holder = $2`
          await database.again(remove, [stored, holder]).catch(() => {})
        },
      }
    },
  }
}
