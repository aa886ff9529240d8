import { readSecret } from '@plat/config'
import { type Clock, type PoolObservers, pathOfTarget, reasonOf } from '@plat/core'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import type { Tenancy } from '../call/index.ts'
import { type AdminAuthentication, authentication, identification, type People, throttled } from './auth.ts'
import { BrowserAuth } from './browser/browser-auth.ts'
import type { BrowserSessions } from './browser/sessions.ts'
import { Caller } from './caller.ts'
import { AdminError } from './error.ts'
import { type Grants, listsOf, type Principal, tokenPrincipal } from './roles.ts'
import { type AdminRoute, adminRoutes, type RouteRow } from './routes.ts'
import { demandStepUp, type StepUp } from './step-up.ts'
import { LedgerReaders } from './throttle/ledger-readers.ts'
import { type AdminRefusal, RefusedTokens } from './throttle/refused.ts'

/** The routes of one feature. */
export interface AdminRoutes {
  /** Adds routes, such as `context.on('GET /v1/approvals', handler)`. The table in `routes.ts` determines who may call them. */
  mount(context: AdminContext): void
}

/** Registers the routes of a feature. */
export interface AdminContext {
  /** Adds a handler. The role that the route's row requires is checked before any body is read. */
  on(route: AdminRoute, handler: AdminHandler): void
  /** Accepts bodies of this media type, up to `maxBytes`, and passes them to handlers as a Buffer. By default, only JSON is accepted. */
  takes(type: string, maxBytes: number): void
}

/** Handles a request. Its result is sent as JSON. Throws `AdminError` to refuse the request. */
export type AdminHandler = (request: FastifyRequest, reply: FastifyReply, caller: Caller) => unknown

/** Public keys of `adminAuth.oidc`. */
interface LoginConfig {
  readonly issuer: string
  readonly audience: string
  readonly clientID: string
  readonly scopes: readonly string[]
  readonly resource: string
}

/** The keys of `adminAuth` that the frame reads. */
export interface AdminConfig extends Grants {
  readonly mode: 'token' | 'oidc' | 'both'
  readonly oidc: LoginConfig
  readonly stepUp: StepUp
}

/** Sessions of browsers that the frame accepts. */
interface Browsers {
  readonly sessions: BrowserSessions
  /** Origin of `consoleURL`; null: not set. */
  readonly consoleOrigin: string | null
}

export interface AdminOptions {
  /** Where `PLAT_ADMIN_TOKEN` or `PLAT_ADMIN_TOKEN_FILE` is read from. */
  readonly env: NodeJS.ProcessEnv
  /** Block `adminAuth`. */
  readonly config: AdminConfig
  /** Null in mode `token`. */
  readonly people: People | null
  readonly ledgers: Ledgers
  /** Absent: there are no tenants. */
  readonly tenancy?: Tenancy
  /** `auditFailurePolicy` is `closed`: a change is recorded durably before it is made. */
  readonly recordsFirst: boolean
  readonly clock: Clock
  readonly log: Log
  /** Counts a refused token. */
  readonly refused: (reason: AdminRefusal) => void
  readonly pools?: PoolObservers<'ledger_readers'>
  /** Null: sessions of the console are not accepted. */
  readonly browsers: Browsers | null
}

/** The admin API, without the routes of the features. */
export interface Admin {
  /** Authenticates callers of other endpoints; null if the admin API is disabled. */
  readonly authenticate: AdminAuthentication | null
  /** Null if the admin API or the console is disabled. */
  readonly console: ConsoleLogin | null
  /** Adds the routes of all features to a listener, in a separate scope. If the admin API is disabled, adds none, so that all are 404. */
  mount(app: FastifyInstance, features: readonly AdminRoutes[]): void
}

/** Parts of the frame that log browsers in. */
export interface ConsoleLogin {
  readonly browsers: BrowserAuth
  /** The static token; null: links are not accepted. */
  readonly token: string | null
  /** Null: people cannot log in. */
  readonly people: People | null
  readonly refusals: RefusedTokens
}

/** Methods that change nothing and leave no record. */
const READS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/**
 * The admin API (docs/spec/gateway.md, "Authentication"): one static token with every role, people with the tokens of an identity
 * provider, or both. In mode `token` without a token it is disabled, which the log says. Throws when the secret is set
 * twice, empty or unreadable.
 */
export function createAdmin(options: AdminOptions): Admin {
  const { env, config, people, recordsFirst, log } = options
  const { mode } = config
  const token = mode === 'oidc' ? null : readSecret(env, 'PLAT_ADMIN_TOKEN')
  if (token === null && people === null) {
    log.warn({}, 'the admin API is disabled: PLAT_ADMIN_TOKEN is not set')
    return { authenticate: null, console: null, mount() {} }
  }
  const refusals = new RefusedTokens(options)
  const grants: Grants = { ...config, ...(options.tenancy && { tenancy: options.tenancy }) }
  const identify = identification({ token, people, grants })
  const authenticate = authentication(refusals, identify)
  const shared = { grants, token, hasPeople: people !== null }
  const browsers = options.browsers === null ? null : new BrowserAuth({ ...options.browsers, ...shared })
  const callers = new WeakMap<FastifyRequest, Caller>()
  const records = new ChangeRecords(options)
  const readers = new LedgerReaders(options.pools?.of('ledger_readers'))
  const callerOf = callersBy({ authenticate, identify, browsers, refusals })
  const on = (scope: FastifyInstance, route: AdminRoute, handler: AdminHandler) => {
    const row = adminRoutes[route]
    scope.route({
      ...partsOf(route),
      async onRequest(request, reply) {
        const caller = row.needs === 'none' ? new Caller(ANONYMOUS, row) : await callerOf(request, reply, row)
        callers.set(request, caller)
        caller.admit()
        if ('stepUp' in row) demandStepUp(config.stepUp[row.stepUp], caller.principal, options.clock.now())
      },
      handler(request, reply) {
        const caller = callers.get(request)
        if (caller === undefined) throw new Error(`no caller at ${route}`)
        const work = () => handler(request, reply, caller)
        const answer = 'readsLedger' in row ? () => readers.read(caller.by, work) : work
        if (!recordsFirst || READS.has(request.method) || caller.changesNothing) return answer()
        return records.intent(request, caller, route).then(answer)
      },
    })
  }
  return {
    authenticate,
    console: browsers === null ? null : { browsers, token, people, refusals },
    mount(app, features) {
      app.register(async (scope) => {
        scope.setErrorHandler(answerFault)
        scope.addHook('onSend', async (request, reply) => records.outcome(request, reply, callers.get(request)))
        scope.addHook('onRequest', async (_request, reply) => {
          reply.header('cache-control', 'no-store')
        })
        const context: AdminContext = { on: (route, handler) => on(scope, route, handler), takes: takesOn(scope) }
        context.on('GET /v1/auth/config', async () => loginOf(config))
        context.on('GET /v1/whoami', async (_request, _reply, { principal }) => whoOf(principal))
        for (const feature of features) feature.mount(context)
      })
    },
  }
}

/** Identifies the caller of a route by its token, or else by the cookie of its session. */
function callersBy({
  authenticate,
  identify,
  browsers,
  refusals,
}: {
  readonly authenticate: AdminAuthentication
  readonly identify: ReturnType<typeof identification>
  readonly browsers: BrowserAuth | null
  readonly refusals: RefusedTokens
}) {
  return async (request: FastifyRequest, reply: FastifyReply, row: RouteRow): Promise<Caller> => {
    const { authorization } = request.headers
    const secret = authorization === undefined ? (browsers?.secretIn(request) ?? null) : null
    if (browsers === null || secret === null) {
      const principal = await authenticate(authorization, request.ip)
      return new Caller(principal, row, { renew: () => identify(authorization) })
    }
    const work = () => browsers.identify(request, secret)
    const found = await throttled(refusals, request.ip, work, 'invalid').catch((error: unknown) => {
      // A browser would send the cookie of an ended session again and again.
      if (error instanceof AdminError && error.code === 'unauthenticated')
        reply.header('set-cookie', browsers.cookie(request, null))
      throw error
    })
    const { principal, session } = found
    return new Caller(principal, row, { session, renew: () => browsers.renewed(session, secret) })
  }
}

/** Records of kind `admin`: changes, and attempts, of an authenticated caller. */
class ChangeRecords {
  readonly #options: Pick<AdminOptions, 'ledgers' | 'log'>

  constructor(options: Pick<AdminOptions, 'ledgers' | 'log'>) {
    this.#options = options
  }

  /** Throws `audit_unavailable` when the record is not durable; a revocation is made all the same, since it only stops calls. */
  async intent(request: FastifyRequest, caller: Caller, route: AdminRoute): Promise<void> {
    const { ledgers, log } = this.#options
    try {
      await ledgers.of(caller.home).append({ kind: 'admin', ...changeOf(request, caller), phase: 'intent' })
    } catch (error) {
      log.error(
        { action: route, error: reasonOf(error) },
        'the record of an admin action could not be written before the action',
      )
      if (route === 'POST /v1/revocations') return
      throw new AdminError('audit_unavailable', 'the change is not made: the audit ledger cannot be written')
    }
  }

  /** How it went, before it is answered. */
  async outcome(request: FastifyRequest, reply: FastifyReply, caller: Caller | undefined): Promise<void> {
    const { ledgers, log } = this.#options
    if (caller === undefined || READS.has(request.method) || caller.leavesOwnRecord) return
    const change = changeOf(request, caller)
    try {
      await ledgers.of(caller.home).append({ kind: 'admin', ...change, status: reply.statusCode })
    } catch (error) {
      log.error({ action: change.action, error: reasonOf(error) }, 'an admin action could not be recorded')
    }
  }
}

function changeOf(request: FastifyRequest, { by }: Caller) {
  const path = pathOfTarget(request.url)
  return { action: `${request.method} ${request.routeOptions.url ?? ''}`, path, by, requestId: request.id }
}

function takesOn(scope: FastifyInstance): AdminContext['takes'] {
  const whole = async (_: FastifyRequest, body: Buffer) => body
  return (type, bodyLimit) => void scope.addContentTypeParser(type, { parseAs: 'buffer', bodyLimit }, whole)
}

function partsOf(route: AdminRoute): { method: HTTPMethods; url: string } {
  const [method, path = ''] = route.split(' ')
  // A colon within a segment is literal, as in `config:bundle`; the router requires it to be doubled.
  const url = path.replace(/(?<=[^/]):/g, '::')
  if (method === 'GET' || method === 'POST' || method === 'DELETE') return { method, url }
  throw new Error(`${route} has a method that no route of the admin API has`)
}

/** The caller of a route that requires no token. */
const ANONYMOUS: Principal = { ...tokenPrincipal({}), by: '', person: [], roles: new Set(), byToken: false }

/** Returns the caller's own name and roles. */
function whoOf({ by, roles, namespaceRoles, tenantRoles }: Principal): object {
  return { by, roles: [...roles], namespaceRoles: listsOf(namespaceRoles), tenantRoles: listsOf(tenantRoles) }
}

/** Returns the configuration that consoles and `plat login` need; all of it is public. */
function loginOf({ mode, oidc: { issuer, audience, clientID, scopes, resource } }: AdminConfig): object {
  if (mode === 'token') return { mode }
  return { mode, issuer, audience, clientID, scopes, ...(resource !== '' && { resource }) }
}

/** Renders an AdminError. Other errors are rethrown for the error handler of the listener. */
export function answerFault(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (!(error instanceof AdminError)) throw error
  if (error.code === 'unauthenticated') reply.header('www-authenticate', 'Bearer realm="plat-admin"')
  const { code, message, details, status } = error
  return reply.code(status).send({ error: code, message, requestId: request.id, ...details })
}
