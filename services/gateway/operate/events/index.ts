import type { Clock, Ids, PoolObservers } from '@plat/core'
import type { AdminRoutes } from '../../admin/index.ts'
import { EventFeed } from './feed.ts'
import { createEventRoutes, type EventRoutesOptions } from './routes.ts'

export { EndedSessions } from './ended.ts'
export type { EventFeed } from './feed.ts'

export interface EventsOptions {
  readonly clock: Clock
  readonly ids: Ids
  /** Returns the names of what is not well. */
  readonly problems: () => readonly string[]
}

/** Events for `GET /v1/events` (docs/console.md). */
export function createEvents(options: EventsOptions): EventFeed {
  return new EventFeed(options)
}

export function eventRoutes(
  feed: EventFeed,
  {
    pools,
    ...options
  }: Omit<EventRoutesOptions, 'feed' | 'observer'> & { readonly pools: PoolObservers<'event_streams'> },
): { readonly routes: AdminRoutes } {
  return { routes: createEventRoutes({ ...options, feed, observer: pools.of('event_streams') }) }
}
