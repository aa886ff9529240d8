import { type Database, EVEN_LOST } from '../database.ts'

/** The last durable record of each gateway's ledger, as text; a `HeadStore` of `@plat/ledger`. */
export interface LedgerHeads {
  /** Place named in messages. */
  readonly place: string
  /** Returns null when there is none, and for a ledger without an id. Rejects with StateUnreachableError. */
  read(ledgerId: string | null): Promise<string | null>
  /** Durable when it resolves. Rejects with StateUnreachableError, also while the database counts as lost. */
  write(ledgerId: string, text: string): Promise<void>
  /** Removes the head of a ledger whose end is lost. Rejects like `write`. */
  remove(ledgerId: string): Promise<void>
}

export function ledgerHeads(database: Database): LedgerHeads {
  const table = `${database.schema}.ledger_head`
  return {
    place: `its row in ${table} of the state database`,
    async read(ledgerId) {
      if (ledgerId === null) return null
      const read = `SELECT head FROM ${table} WHERE ledger = $1`
      // A database that went back in time has an older head, which the ledger must contain as well.
      const [row] = await database.rows<{ head: string }>(read, [ledgerId], EVEN_LOST)
      return row?.head ?? null
    },
    async write(ledgerId, text) {
      await database.rows(
        `INSERT INTO ${table} (ledger, head) VALUES ($1, $2)
           ON CONFLICT (ledger) DO UPDATE SET head = EXCLUDED.head, at = EXCLUDED.at`,
        [ledgerId, text],
      )
    },
    async remove(ledgerId) {
      await database.again(`DELETE FROM ${table} WHERE ledger = $1`, [ledgerId])
    },
  }
}
