import { type BuildInfo, type Clock, type Ids, rfc3339 } from '@plat/core'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { FastifyInstance } from 'fastify'
import { AdminError, type AdminRoutes, type ConsoleLogin } from '../../admin/index.ts'
import { Assets, type LoadAssets } from './assets.ts'
import type { ConsoleConfig } from './config.ts'
import { Flows, type Sealer } from './flows.ts'
import type { OAuthRequests } from './login.ts'
import { ConsoleRoutes, type ConsoleRoutesConfig } from './routes.ts'

export type { LoadAssets } from './assets.ts'
export { isConsoleOn } from './config.ts'

export interface ConsoleOptions {
  readonly config: ConsoleRoutesConfig & {
    readonly console: ConsoleConfig
    readonly adminAuth: {
      readonly oidc: { readonly clientID: string; readonly scopes: readonly string[]; readonly resource: string }
    }
  }
  /** Null: the console or the admin API is off. */
  readonly console: ConsoleLogin | null
  /** Absent: pages are 404. */
  readonly assets: LoadAssets | undefined
  /** Loads the client of the identity provider. */
  readonly oauth: (client: { readonly clientID: string; readonly clientSecretFile: string }) => Promise<OAuthRequests>
  readonly sealer: Sealer
  readonly ledgers: Ledgers
  readonly build: BuildInfo
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** The console of people (docs/console.md). */
export interface ConsoleFeature {
  readonly routes: AdminRoutes
  /** There are pages to open. */
  readonly hasPages: boolean
  /** Mounts `/console` on the listener of the admin API. */
  pages(app: FastifyInstance): void
}

export function createConsole(options: ConsoleOptions): ConsoleFeature {
  const { console } = options
  if (console === null) return { routes: { mount() {} }, hasPages: false, pages() {} }
  const flows = new Flows(options)
  const assets = options.assets === undefined ? null : new Assets(options.assets)
  const routes = new ConsoleRoutes({ ...options, console, assets, flows, login: loginOf(options, console) })
  return {
    hasPages: assets !== null,
    pages: (app) => routes.mount(app),
    routes: {
      mount(context) {
        context.on('POST /v1/console/links', async (_request, reply, caller) => {
          if (!caller.byToken || caller.session !== null)
            throw new AdminError('conflict', 'only the static token mints links: people log in by adminAuth.oidc')
          const { code, until } = flows.mint()
          reply.code(201)
          return { code, path: `/console/#link=${code}`, expiresAt: rfc3339(until) }
        })
      },
    },
  }
}

/** Loads the libraries of the flow at the first login; null: people cannot log in. */
function loginOf({ config, oauth }: ConsoleOptions, { people }: ConsoleLogin) {
  const { scopes, resource, clientID: shared } = config.adminAuth.oidc
  const clientID = config.console.clientID || shared
  if (people === null || clientID === '') return null
  const load = async () => {
    const { Login } = await import('./login.ts')
    const requests = await oauth({ clientID, clientSecretFile: config.console.clientSecretFile })
    const identify = async (token: string) => people.identify(token)
    return new Login({ oauth: requests, identify, scopes, resource })
  }
  let loading: ReturnType<typeof load> | null = null
  return () => {
    loading ??= load()
    return loading
  }
}
