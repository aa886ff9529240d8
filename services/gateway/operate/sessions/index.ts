import { type PoolObservers, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { AdminRoutes } from '../../admin/index.ts'
import { type Session, SessionBook, type SessionName, type SessionRecord } from './book.ts'
import { restore } from './restore.ts'
import { createSessionRoutes, type SessionRoutesOptions } from './routes.ts'

export interface SessionsParts extends Omit<SessionRoutesOptions, 'book' | 'config' | 'auditPath'> {
  readonly config: { readonly sessions: SessionRoutesOptions['config']; readonly auditPath: string }
  /** The last ledger record when the gateway started; later ones come through `see`. */
  readonly placed: () => { readonly seq: number }
  /** Called with each session that is new to this gateway. */
  readonly onBegun?: (session: SessionName) => void
  readonly log: Log
  readonly pools?: PoolObservers<'listed_sessions'>
}

/** The sessions that have called, with their records. */
export interface SessionsFeature {
  readonly routes: AdminRoutes
  /** Applies a record on its way to the ledger. */
  see(rec: SessionRecord, at: number): void
  listed(): Iterable<Readonly<Session>>
  /** Returns a session, or null if no session has this name. Waits until the sessions from before this start are known. */
  find(name: SessionName): Promise<Readonly<Session> | null>
  close(): Promise<void>
}

/** Sessions (docs/spec/gateway.md, "Sessions"), derived from records; those from before a restart are read from the end of the ledger. */
export function createSessions(parts: SessionsParts): SessionsFeature {
  const { config, placed, log } = parts
  const book = new SessionBook(parts.pools?.of('listed_sessions'), parts.onBegun)
  const stop = new AbortController()
  const restored = restore(book, config.auditPath, placed().seq, stop.signal).catch((error: unknown) => {
    log.error(
      { error: reasonOf(error) },
      'sessions from before this start are not listed: the ledger could not be read',
    )
  })
  return {
    routes: createSessionRoutes({ ...parts, book, config: config.sessions, auditPath: config.auditPath }),
    see: (rec, at) => book.see(rec, at),
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
