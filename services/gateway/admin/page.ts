import { AdminError } from './error.ts'
import { queried } from './read.ts'

/** How many items a page holds: when the caller does not say, and at most. */
export interface PageSize {
  readonly usual: number
  readonly most: number
}

const PAGE: PageSize = { usual: 100, most: 1000 }

/** How every list of the admin API answers. */
export interface Page<T> {
  readonly items: readonly T[]
  /** Asks for the next page as `cursor`; null at the end. */
  readonly nextCursor: string | null
}

/**
 * One page of `items`, which stand in the descending order of their ids: `limit` and `cursor` of the query. The cursor
 * is the last id that was told, so that what is added or removed meanwhile moves no other item across pages.
 */
export function page<T extends { readonly id: string }>(items: readonly T[], query: unknown, size = PAGE): Page<T> {
  const limit = limitOf(query, size)
  const cursor = queried(query, 'cursor')
  const after = cursor === null ? items : items.filter((item) => item.id < cursor)
  const shown = after.slice(0, limit)
  return { items: shown, nextCursor: after.length > limit ? (shown.at(-1)?.id ?? null) : null }
}

/** `limit` of the query. Throws `invalid_request`. */
export function limitOf(query: unknown, { usual, most } = PAGE): number {
  const text = queried(query, 'limit')
  if (text === null) return usual
  const limit = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= most) return limit
  throw new AdminError('invalid_request', `limit: must be a whole number from 1 to ${most}`)
}
