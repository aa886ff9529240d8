import { reasonOf, watchedPool } from '@plat/core'
import type { FastifyInstance } from 'fastify'
import { type Admin, type AdminRoutes, BrowserSessions, decodeBrowserEvent } from '../admin/index.ts'
import { openOAuthClient } from '../authn/token-vault/index.ts'
import { LookUps } from '../call/bindings/look-ups.ts'
import { createConsole, isConsoleOn } from '../operate/console/index.ts'
import { type EventFeed, eventRoutes } from '../operate/events/index.ts'
import type { Shared } from './shared.ts'

/** Sessions of browsers, with the origin of the console; null: the console is off. */
export async function openBrowsers({ config, journals, clock, ids, log, pools, keep }: Shared) {
  if (!isConsoleOn(config)) return null
  const journal = keep(await journals.open({ name: 'console-sessions', path: '', decode: decodeBrowserEvent }))
  const lookUps = watchedPool({ name: 'unknown_console_sessions', observer: pools.of('unknown_console_sessions') })
  const sessions = await BrowserSessions.open({
    journal,
    lookUps: journals.catchUp === null ? null : new LookUps({ catchUp: journals.catchUp, pool: lookUps, clock, log }),
    clock,
    ids,
    idleMs: config.console.idleSeconds * 1000,
    lifetimeMs: config.console.sessionSeconds * 1000,
    pool: watchedPool({ name: 'console_sessions', observer: pools.of('console_sessions') }),
    onFault: (error) => log.error({ error: reasonOf(error) }, 'sessions of the console could not be stored'),
  })
  return { sessions: keep(sessions), consoleOrigin: consoleOriginOf(config) }
}

/** Origin of `consoleURL`; null: not set. */
function consoleOriginOf({ consoleURL }: Pick<Shared['config'], 'consoleURL'>): string | null {
  return consoleURL === '' ? null : new URL(consoleURL).origin
}

/** The console, and the events that it shows. */
export interface Console {
  /** Origin of its pages for browsers; null: not known, or the console is off. */
  readonly origin: string | null
  readonly hasPages: boolean
  /** Adds the admin API with the routes of all features, and the pages of the console. */
  mount(app: FastifyInstance, features: readonly AdminRoutes[]): void
}

export function startConsole(shared: Shared, admin: Admin, feed: EventFeed): Console {
  const { config, consoleAssets: assets, audit } = shared
  const { issuer, caFile } = config.adminAuth.oidc
  const { pages, routes, hasPages } = createConsole({
    ...shared,
    console: admin.console,
    assets,
    ledgers: audit.ledgers,
    oauth: (client) =>
      openOAuthClient(
        {
          ...{ field: 'console', issuer, caFile, clientAuth: 'basic', saysIssuer: false, ...client },
          ...{ authorizationURL: '', tokenURL: '', jwksURL: '', revocationURL: '' },
        },
        shared,
      ),
  })
  const events = eventRoutes(feed, { ...shared, sessions: admin.console?.browsers.sessions ?? null })
  return {
    origin: admin.console === null ? null : consoleOriginOf(config),
    hasPages,
    mount(app, features) {
      admin.mount(app, [...features, routes, events.routes])
      pages(app)
    },
  }
}
