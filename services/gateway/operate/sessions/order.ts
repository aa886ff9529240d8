import { AdminError, limitOf, type PageSize, queried } from '../../admin/index.ts'
import type { Session } from './book.ts'

/** A page of sessions before they are rendered. */
export interface SessionPage {
  readonly sessions: readonly Readonly<Session>[]
  readonly nextCursor: string | null
}

type Position = readonly [time: number, id: string]

/**
 * Returns one page by `order`, `limit` and `cursor` of the query: by descending id, or with `order=activity` those with the latest call first. A
 * session that becomes active between two pages moves to the front, and no other moves across pages.
 */
export function sessionPage(sessions: readonly Readonly<Session>[], query: unknown, size: PageSize): SessionPage {
  const limit = limitOf(query, size)
  const isByActivity = orderIn(query) === 'activity'
  const positionOf = (one: Readonly<Session>): Position => [isByActivity ? one.lastActivity : 0, idOf(one)]
  const after = positionIn(queried(query, 'cursor'), isByActivity)
  const left = sessions
    .map((session) => ({ session, at: positionOf(session) }))
    .filter(({ at }) => after === null || compare(at, after) > 0)
    .toSorted((one, other) => compare(one.at, other.at))
  const page = left.slice(0, limit)
  const last = left.length > limit ? page.at(-1)?.at : undefined
  const nextCursor = last === undefined ? null : isByActivity ? last.join('~') : last[1]
  return { sessions: page.map(({ session }) => session), nextCursor }
}

export function idOf({ namespace, agent, session }: Readonly<Session>): string {
  return `${namespace}/${agent}/${session}`
}

function orderIn(query: unknown): 'id' | 'activity' {
  const order = queried(query, 'order') ?? 'id'
  if (order === 'id' || order === 'activity') return order
  throw new AdminError('invalid_request', 'order: must be id or activity')
}

function positionIn(cursor: string | null, isByActivity: boolean): Position | null {
  if (cursor === null) return null
  if (!isByActivity) return [0, cursor]
  const [, time, id] = /^(\d{1,15})~(.*)$/s.exec(cursor) ?? []
  if (time !== undefined && id !== undefined) return [Number(time), id]
  throw new AdminError('invalid_request', 'cursor: must be the nextCursor of the page before')
}

/** Descending by time, then by id. */
function compare([time, id]: Position, [otherTime, otherId]: Position): number {
  if (time !== otherTime) return otherTime - time
  return id === otherId ? 0 : id < otherId ? 1 : -1
}
