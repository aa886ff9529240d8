import { AdminError } from './error.ts'
import { queried } from './read.ts'

/** How many items a page holds: when the caller does not say, and at most. */
export interface PageSize {
  readonly usual: number
  readonly most: number
}

const PAGE: PageSize = { usual: 100, most: 1000 }

/** A page of a list of the admin API. */
export interface Page<T> {
  readonly items: readonly T[]
  /** `cursor` of the next page; null at the end. */
  readonly nextCursor: string | null
}

/**
 * Returns one page of `items`, which must be in descending order of their ids, by `limit` and `cursor` of the query. The cursor is the
 * last id of the previous page, so that items that are added or removed between requests do not move others across pages.
 */
export function page<T extends { readonly id: string }>(items: readonly T[], query: unknown, size = PAGE): Page<T> {
  const limit = limitOf(query, size)
  const cursor = queried(query, 'cursor')
  const after = cursor === null ? items : items.filter((item) => item.id < cursor)
  const page = after.slice(0, limit)
  return { items: page, nextCursor: after.length > limit ? (page.at(-1)?.id ?? null) : null }
}

/** `limit` of the query. Throws `invalid_request`. */
export function limitOf(query: unknown, { usual, most } = PAGE): number {
  const text = queried(query, 'limit')
  if (text === null) return usual
  const limit = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= most) return limit
  throw new AdminError('invalid_request', `limit: must be a whole number from 1 to ${most}`)
}
