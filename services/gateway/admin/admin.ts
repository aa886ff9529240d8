import { readSecret } from '@plat/config'
import { reasonOf } from '@plat/core'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { authentication, type People } from './auth.ts'
import { AdminFault } from './fault.ts'
import { may, type Principal, type Role, type RoleTable } from './roles.ts'

/** The routes of one feature. */
export interface AdminRoutes {
  /** Adds routes below `/v1/`; each names its role: `app.get('/v1/approvals', context.needs('viewer'), handler)`. */
  mount(app: FastifyInstance, context: AdminContext): void
}

/** What the frame gives to a feature's routes. */
export interface AdminContext {
  /** Route options: the caller is authenticated and has the role, before any body is read. */
  needs(role: Role): { readonly onRequest: (request: FastifyRequest) => Promise<void> }
  /** Who calls; known in every handler behind `needs`. */
  principal(request: FastifyRequest): Principal
}

/** The keys of `adminAuth` that the frame reads. */
export interface AdminConfig {
  readonly mode: 'token' | 'oidc' | 'both'
  readonly roles: RoleTable
  readonly oidc: { readonly issuer: string; readonly clientID: string; readonly scopes: readonly string[] }
}

export interface AdminOptions {
  /** Where `PLAT_ADMIN_TOKEN` or `PLAT_ADMIN_TOKEN_FILE` is read from. */
  readonly env: NodeJS.ProcessEnv
  /** Block `adminAuth`. */
  readonly config: AdminConfig
  /** Null in mode `token`. */
  readonly people: People | null
  readonly ledgers: Ledgers
  readonly log: Log
}

/** The admin API: its frame, without the features. */
export interface Admin {
  /** Adds every feature's routes to a listener, in a scope of their own. Disabled: adds nothing, so all of it is 404. */
  mount(app: FastifyInstance, features: readonly AdminRoutes[]): void
}

/** Methods that change nothing and leave no record. */
const READS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/**
 * The admin API (document 3, "Authentication"): one static token with every role, people with the tokens of an identity
 * provider, or both. In mode `token` without a token it is disabled, which the log says. Throws when the secret is set
 * twice, empty or unreadable.
 */
export function createAdmin({ env, config, people, ledgers, log }: AdminOptions): Admin {
  const { mode, roles } = config
  const token = mode === 'oidc' ? null : readSecret(env, 'PLAT_ADMIN_TOKEN')
  if (token === null && people === null) {
    log.warn({}, 'the admin API is disabled: PLAT_ADMIN_TOKEN is not set')
    return { mount() {} }
  }
  const authenticate = authentication({ token, people, roles })
  const principals = new WeakMap<FastifyRequest, Principal>()
  const context: AdminContext = {
    needs: (role) => ({
      async onRequest(request) {
        const principal = await authenticate(request.headers.authorization)
        principals.set(request, principal)
        if (!may(principal, role)) throw new AdminFault('forbidden', `this needs the role ${role}`)
      },
    }),
    principal(request) {
      const principal = principals.get(request)
      if (principal === undefined) throw new Error('the route names no role')
      return principal
    },
  }
  /** What somebody with a name tried to change is recorded, with how it went, before it is answered. */
  const record = async (request: FastifyRequest, reply: FastifyReply) => {
    const principal = principals.get(request)
    if (principal === undefined || READS.has(request.method)) return
    const action = `${request.method} ${request.routeOptions.url ?? ''}`
    const path = request.url.split('?', 1)[0] ?? ''
    try {
      const rec = { action, path, by: principal.by, status: reply.statusCode, requestId: request.id }
      await ledgers.of('').append({ kind: 'admin', ...rec })
    } catch (error) {
      log.error({ action, error: reasonOf(error) }, 'an admin action could not be recorded')
    }
  }
  return {
    mount(app, features) {
      app.register(async (scope) => {
        scope.setErrorHandler(answerFault)
        scope.addHook('onSend', record)
        scope.addHook('onRequest', async (_request, reply) => {
          reply.header('cache-control', 'no-store')
        })
        scope.get('/v1/auth/config', async () => loginOf(config))
        for (const feature of features) feature.mount(scope, context)
      })
    },
  }
}

/** What a console needs before anybody has logged in; all of it is public. */
function loginOf({ mode, oidc: { issuer, clientID, scopes } }: AdminConfig): object {
  return mode === 'token' ? { mode } : { mode, issuer, clientID, scopes }
}

/** Our refusals in our shape; whatever else is thrown goes on to the listener's own handler. */
function answerFault(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (!(error instanceof AdminFault)) throw error
  if (error.code === 'unauthenticated') reply.header('www-authenticate', 'Bearer realm="plat-admin"')
  return reply.code(error.status).send({ error: error.code, message: error.message, requestId: request.id })
}
