import { type Database, EVEN_LOST } from '../database.ts'

/** How long a copy belongs to a process that no longer renews, in milliseconds. */
export const COPY_LEASE_MS = 10_000
/** Maximum number of chunks that one read returns, however small they are. */
const CHUNKS_AT_ONCE = 512

/** A copy of a ledger, up to its head. */
export interface LedgerCopy {
  readonly ledgerId: string
  /** Empty: the fleet's. */
  readonly tenant: string
  /** Host name of the gateway, and the path of the ledger there. */
  readonly replica: string
  readonly path: string
  /** Last record; -1 for an empty copy. */
  readonly seq: number
  readonly hash: string
  /** Position after its last line. */
  readonly bytes: number
  /** Time of the last chunk by the clock of the server, in milliseconds since the epoch. */
  readonly at: number
}

/** Whose copy it is: the process and its ledger. */
export interface CopyOwner extends Pick<LedgerCopy, 'ledgerId' | 'tenant' | 'replica' | 'path'> {
  /** Identifies the process, across restarts on the same disk. */
  readonly writer: string
}

/** Whole lines of a ledger, compressed, as stored: nothing is verified. */
export interface StoredChunk {
  readonly first: number
  readonly last: number
  /** Hash of the record before, and of the last one. */
  readonly prev: string
  readonly hash: string
  readonly position: number
  /** Size of the lines. */
  readonly bytes: number
  readonly data: Buffer
}

/** A chunk that continues the copy. */
export interface ShippedChunk extends Omit<StoredChunk, 'data'> {
  /** Null: its records left the ledger before; `entry` is required then. */
  readonly data: Buffer | null
  /** Entry of the sealed segment that it ends, as JSON; null when it ends none. */
  readonly entry: string | null
}

/** The head of a copy after an append, and whether the append was made. */
export interface Shipped {
  readonly seq: number
  readonly hash: string
  readonly isDone: boolean
  /** The copy belongs to another process now. */
  readonly isOthers: boolean
}

/** Copies of the ledgers of all gateways. Every method rejects with StateUnreachableError. */
export interface LedgerCopies {
  list(): Promise<readonly LedgerCopy[]>
  /** Returns the copies of this ledger, and of this replica, path and tenant; also while the database counts as lost. */
  ofLedger(owner: Omit<CopyOwner, 'writer' | 'ledgerId'> & { readonly ledgerId: string | null }): Promise<LedgerCopy[]>
  /** Makes the copy this process's for `COPY_LEASE_MS`, and creates it. Returns what is in the way, or null. */
  claim(owner: CopyOwner): Promise<'name' | 'writer' | null>
  /** Appends a chunk if it continues the copy of this writer. Sent again, it is appended once. */
  ship(owner: CopyOwner, chunk: ShippedChunk): Promise<Shipped>
  /** Returns chunks in order, the first with `position`, or the next one: at least one, and no more than `bytes` of lines. Empty at the end. */
  chunks(ledgerId: string, position: number, bytes: number): Promise<readonly StoredChunk[]>
  /** Returns the position of the first chunk with record `seq` or later ones; null when there is none. */
  positionOf(ledgerId: string, seq: number): Promise<number | null>
  /** Entries of sealed segments as JSON, in order. */
  segments(ledgerId: string): Promise<readonly { readonly entry: string; readonly hasLeft: boolean }[]>
  /** Removes the chunks of a segment, and replaces its entry. */
  leave(
    owner: CopyOwner,
    segment: { readonly first: number; readonly last: number; readonly entry: string },
  ): Promise<void>
  /** Lets another process claim the copy at once. */
  release(owner: CopyOwner): Promise<void>
}

/** More than the lines of any chunk have, in bytes. */
const MAX_CHUNK_BYTES = 2 * 1024 * 1024

/** Hash before the first record of a ledger. */
const NO_HASH = '0'.repeat(64)

interface CopyRow {
  readonly ledger: string
  readonly tenant: string
  readonly replica: string
  readonly path: string
  readonly seq: string
  readonly hash: string
  readonly bytes: string
  readonly at: string
}

interface ChunkRow {
  readonly first: string
  readonly last: string
  readonly prev: string
  readonly hash: string
  readonly position: string
  readonly bytes: number
  readonly data: Buffer
}

interface ShippedRow {
  readonly head: string | null
  readonly head_hash: string | null
  readonly writer: string | null
  readonly done: boolean
}

export function ledgerCopies(database: Database): LedgerCopies {
  return { ...readingOf(database), ...writingOf(database) }
}

type Writing = 'claim' | 'ship' | 'leave' | 'release'

function readingOf(database: Database): Omit<LedgerCopies, Writing> {
  const { schema: s } = database
  const copy = `SELECT ledger, tenant, replica, path, seq, hash, bytes, (extract(epoch FROM at) * 1000)::bigint AS at FROM ${s}.ledger_copy`
  const chunk = `SELECT first, last, prev, hash, position, bytes, data FROM ${s}.ledger_chunk WHERE ledger = $1`
  return {
    async list() {
      return (await database.rows<CopyRow>(`${copy} ORDER BY replica, path, tenant`, [])).map(copyOf)
    },
    async ofLedger({ ledgerId, tenant, replica, path }) {
      const where = `${copy} WHERE ledger = $1 OR (replica = $2 AND path = $3 AND tenant = $4)`
      return (await database.rows<CopyRow>(where, [ledgerId ?? '', replica, path, tenant], EVEN_LOST)).map(copyOf)
    },
    async chunks(ledgerId, position, bytes) {
      // Sizes are summed before any data is read.
      const read = `${chunk} AND first IN (
        SELECT first FROM (
          SELECT first, sum(bytes) OVER (ORDER BY position) AS total, row_number() OVER (ORDER BY position) AS number FROM (
            SELECT first, bytes, position FROM ${s}.ledger_chunk WHERE ledger = $1 AND position >= coalesce((
                SELECT max(position) FROM ${s}.ledger_chunk
                  WHERE ledger = $1 AND position BETWEEN $2 - ${MAX_CHUNK_BYTES} AND $2 AND position + bytes > $2), $2)
              ORDER BY position LIMIT ${CHUNKS_AT_ONCE}) AS near) AS sized
        WHERE total <= $3 OR number = 1) ORDER BY position`
      return (await database.rows<ChunkRow>(read, [ledgerId, position, bytes])).map(chunkOf)
    },
    async positionOf(ledgerId, seq) {
      const read = `SELECT position FROM ${s}.ledger_chunk WHERE ledger = $1 AND last >= $2 ORDER BY first LIMIT 1`
      const [row] = await database.rows<{ position: string }>(read, [ledgerId, seq])
      return row === undefined ? null : Number(row.position)
    },
    async segments(ledgerId) {
      const read = `SELECT entry, has_left FROM ${s}.ledger_copy_segment WHERE ledger = $1 ORDER BY first`
      const rows = await database.rows<{ entry: string; has_left: boolean }>(read, [ledgerId])
      return rows.map(({ entry, has_left }) => ({ entry, hasLeft: has_left }))
    },
  }
}

function writingOf(database: Database): Pick<LedgerCopies, Writing> {
  const { schema: s } = database
  return {
    async claim({ ledgerId, tenant, replica, path, writer }) {
      const values = [ledgerId, tenant, replica, path, writer, COPY_LEASE_MS, NO_HASH]
      const claim = `SELECT ${s}.claim_copy($1, $2, $3, $4, $5, $6, $7) AS obstacle`
      const [row] = await database.again<{ obstacle: 'name' | 'writer' | null }>(claim, values)
      return row?.obstacle ?? null
    },
    async ship({ ledgerId, writer }, { first, last, prev, hash, position, bytes, data, entry }) {
      const values = [ledgerId, writer, COPY_LEASE_MS, first - 1, prev, last, hash, position, position + bytes]
      const ship = `SELECT * FROM ${s}.ship_chunk($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
      const [row] = await database.again<ShippedRow>(ship, [...values, data, data === null, entry])
      return shippedOf(row, writer)
    },
    async leave({ ledgerId, writer }, { first, last, entry }) {
      await database.again(
        `WITH own AS (SELECT ledger FROM ${s}.ledger_copy WHERE ledger = $1 AND writer = $2),
           gone AS (DELETE FROM ${s}.ledger_chunk USING own
             WHERE ledger_chunk.ledger = own.ledger AND first >= $3 AND last <= $4)
         UPDATE ${s}.ledger_copy_segment AS segment SET has_left = true, entry = $5 FROM own
           WHERE segment.ledger = own.ledger AND segment.first = $3`,
        [ledgerId, writer, first, last, entry],
      )
    },
    async release({ ledgerId, writer }) {
      const release = `UPDATE ${s}.ledger_copy SET until = clock_timestamp() WHERE ledger = $1 AND writer = $2`
      await database.again(release, [ledgerId, writer])
    },
  }
}

function copyOf({ ledger, tenant, replica, path, seq, hash, bytes, at }: CopyRow): LedgerCopy {
  return { ledgerId: ledger, tenant, replica, path, seq: Number(seq), hash, bytes: Number(bytes), at: Number(at) }
}

function chunkOf({ first, last, prev, hash, position, bytes, data }: ChunkRow): StoredChunk {
  return { first: Number(first), last: Number(last), prev, hash, position: Number(position), bytes, data }
}

function shippedOf(row: ShippedRow | undefined, own: string): Shipped {
  const { head = null, head_hash = null, writer = null, done = false } = row ?? {}
  return { seq: head === null ? -1 : Number(head), hash: head_hash ?? NO_HASH, isDone: done, isOthers: writer !== own }
}
