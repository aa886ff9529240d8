import type { Clock, Ids, PoolObservers } from '@plat/core'
import { pathOfTarget } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { AdminRoutes } from '../../admin/index.ts'
import { sandboxUrl, type Tenancy } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { LiveViewConfig } from './config.ts'
import type { ViewedSession } from './records.ts'

export type { ViewedSession } from './records.ts'

export interface LiveViewOptions {
  readonly config: { readonly liveView: LiveViewConfig; readonly auditFailurePolicy: string }
  readonly ledgers: Ledgers
  readonly tenancy: Tenancy
  readonly dialer: Dialer
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
  readonly pools: PoolObservers<'live_views'>
  readonly find: (name: Omit<ViewedSession, 'user'>) => Promise<ViewedSession | null>
  /** Whether a session is revoked, suspended or has ended, or that is not known. */
  readonly hasStopped: (session: ViewedSession) => boolean
  /** Calls `notify` after each change of the revocations. */
  readonly followCuts: (notify: () => void) => void
}

/** Views of the browsers of sandboxes, for admins (docs/sessions.md). */
export interface LiveViewFeature {
  readonly routes: AdminRoutes
  /** Ends all views: they have no end otherwise. */
  leave(): void
  close(): Promise<void>
}

/** Resolves with null while `liveView` is off; its code is not loaded then. */
export async function createLiveView(options: LiveViewOptions): Promise<LiveViewFeature | null> {
  const { config, pools, followCuts } = options
  if (!config.liveView.enabled) return null
  const { ViewRecords } = await import('./records.ts')
  const { LiveViews } = await import('./views.ts')
  const { createLiveViewRoutes } = await import('./routes.ts')
  const records = new ViewRecords({ ...options, recordsFirst: config.auditFailurePolicy === 'closed' })
  const views = new LiveViews({ ...options, config: config.liveView, records, observer: pools.of('live_views') })
  followCuts(views.check)
  const { endpointTemplate } = config.liveView
  return {
    routes: createLiveViewRoutes({ ...options, endpointTemplate, views, records }),
    leave: () => views.leave(),
    close: () => views.close(),
  }
}

/** Whether a path is that of a view, whose connection becomes a WebSocket. */
export function isViewPath(target: string): boolean {
  return /^\/v1\/sessions\/[^/]+\/view\/(?:watch|control)$/.test(pathOfTarget(target))
}

/** Whether the sandbox of a session can be viewed, as far as its name says. */
export function isViewable(
  { enabled, endpointTemplate }: LiveViewConfig,
  name: { session: string; namespace: string },
) {
  return enabled && sandboxUrl(endpointTemplate, name, '/') !== null
}
