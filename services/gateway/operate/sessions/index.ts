import { type PoolObservers, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { AdminRoutes } from '../../admin/index.ts'
import { type Session, SessionBook, type SessionName, type SessionRecord } from './book.ts'
import { restore } from './restore.ts'
import { createSessionRoutes, type SessionRoutesOptions } from './routes.ts'

export type { Session } from './book.ts'

export interface SessionsParts extends Omit<SessionRoutesOptions, 'book' | 'config'> {
  readonly config: { readonly sessions: SessionRoutesOptions['config'] }
  /** All ledgers; records that they get later come through `see`. */
  readonly ledgersAtStart: readonly SessionLedger[]
  /** Called with each session that is new to this gateway. */
  readonly onBegun?: (session: SessionName) => void
  readonly log: Log
  readonly pools?: PoolObservers<'listed_sessions'>
}

/** A ledger from whose end sessions are read. */
export interface SessionLedger {
  readonly tenant: string
  readonly path: string
  placed(): { readonly seq: number }
}

/** The sessions that have called, with their records. */
export interface SessionsFeature {
  readonly routes: AdminRoutes
  /** Applies a record on its way to the ledger. */
  see(rec: SessionRecord, at: number, tenant?: string): void
  listed(): Iterable<Readonly<Session>>
  /** Returns a session, or null if no session has this name. Waits until the sessions from before this start are known. */
  find(name: SessionName & { readonly tenant?: string }): Promise<Readonly<Session> | null>
  close(): Promise<void>
}

/** Sessions (docs/spec/gateway.md, "Sessions"), derived from records; those from before a restart are read from the end of the ledger. */
export function createSessions(parts: SessionsParts): SessionsFeature {
  const { config, ledgersAtStart, log } = parts
  const book = new SessionBook(parts.pools?.of('listed_sessions'), parts.onBegun)
  const stop = new AbortController()
  // Records up to here are read from the ledgers, one after the other; the rest comes through `see`.
  const ends = ledgersAtStart.map(({ tenant, path, placed }) => ({ tenant, path, last: placed().seq }))
  const restored = restoreAll(book, ends, stop.signal, log)
  return {
    routes: createSessionRoutes({
      ...parts,
      book,
      config: config.sessions,
    }),
    see: (rec, at, tenant) => book.see(rec, at, tenant),
    listed: () => book.sessions(),
    async find(name) {
      await restored
      return book.get(name) ?? null
    },
    async close() {
      stop.abort()
      await restored
    },
  }
}

async function restoreAll(
  book: SessionBook,
  ends: readonly Parameters<typeof restore>[1][],
  signal: AbortSignal,
  log: Log,
): Promise<void> {
  for (const end of ends) {
    await restore(book, end, signal).catch((error: unknown) => {
      log.error(
        { path: end.path, error: reasonOf(error) },
        'sessions from before this start are not listed: the ledger could not be read',
      )
    })
  }
}
