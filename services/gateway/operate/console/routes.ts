import { type BuildInfo, type Clock, reasonOf, rfc3339 } from '@plat/core'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import {
  AdminError,
  answerFault,
  type BrowserCaller,
  bodyAs,
  type ConsoleLogin,
  cookieIn,
  cookieOf,
  csrfOf,
  isRequired,
  listsOf,
  type Person,
  queried,
  STEP_UP_ACTIONS,
  throttled,
} from '../../admin/index.ts'
import { type Assets, SECURITY_HEADERS } from './assets.ts'
import type { Flows } from './flows.ts'
import type { Login, LoginFailure } from './login.ts'

/** Binds a login to the browser that began it; `Lax`, since the identity provider leads back from another site. */
const FLOW_COOKIE = '__Host-plat-login'
const FLOW_SECONDS = 600
const SECRET = /^[A-Za-z0-9_-]{43}$/
/** Longest page that a login leads back to, in characters. */
const PAGE_MAX_CHARS = 1_024
/** A page of the console: no other host, no scheme, no way out of `/console`. */
const PAGE = /^\/console(?:\/(?!\/)[!-.0-[\]-~/]*)?$/
/** Largest body of these routes, in bytes. */
const BODY_MAX_BYTES = 4_096

const linkSchema = Type.Object(
  { code: Type.String({ minLength: 1, maxLength: 2_048 }) },
  { additionalProperties: false },
)
const logoutSchema = Type.Object({ all: Type.Optional(Type.Boolean()) }, { additionalProperties: false })

export interface ConsoleParts {
  readonly console: ConsoleLogin
  /** Null: there are no files, and pages are 404. */
  readonly assets: Assets | null
  readonly flows: Flows
  /** Loads the login of people; null: only links log in. */
  readonly login: (() => Promise<Login>) | null
  readonly config: ConsoleRoutesConfig
  readonly ledgers: Ledgers
  readonly build: BuildInfo
  readonly clock: Clock
  readonly log: Log
}

/** Keys of gateway.json. */
export interface ConsoleRoutesConfig {
  readonly console: { readonly sessionSeconds: number }
  readonly adminAuth: {
    readonly oidc: { readonly issuer: string }
    readonly stepUp: Readonly<
      Record<
        (typeof STEP_UP_ACTIONS)[number],
        { acr: readonly string[]; amr: readonly string[]; maxAgeSeconds: number }
      >
    >
  }
}

/** Everything below `/console`: pages, login, logout (docs/console.md). */
export class ConsoleRoutes {
  readonly #parts: ConsoleParts

  constructor(parts: ConsoleParts) {
    this.#parts = parts
  }

  mount(app: FastifyInstance): void {
    app.register(async (scope) => {
      scope.setErrorHandler(answerFault)
      scope.addHook('onRequest', async (request, reply) => {
        reply.headers(SECURITY_HEADERS)
        this.#parts.console.browsers.origin(request)
      })
      const limit = { bodyLimit: BODY_MAX_BYTES }
      scope.get('/console', (request, reply) => this.#page('', request, reply))
      scope.get('/console/*', (request, reply) => this.#page(pathOf(request), request, reply))
      scope.get('/console/session', (request, reply) => this.#session(request, reply))
      scope.get('/console/login', (request, reply) => this.#begin(request, reply))
      scope.get('/console/callback', (request, reply) => this.#loggedIn(request, reply))
      scope.post('/console/link', limit, (request, reply) => this.#linked(request, reply))
      scope.post('/console/logout', limit, (request, reply) => this.#logout(request, reply))
    })
  }

  async #page(path: string, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { assets } = this.#parts
    if (assets !== null && (await assets.send(path || 'index.html', request, reply))) return reply
    throw new AdminError('not_found', 'there is nothing at this path')
  }

  /** Returns who is logged in, or the ways to log in. */
  async #session(request: FastifyRequest, reply: FastifyReply): Promise<object> {
    const { config, build, clock } = this.#parts
    reply.header('cache-control', 'no-store')
    const caller = await this.#caller(request, reply)
    if (caller === null) {
      reply.code(401)
      return { error: 'unauthenticated', message: 'you are not logged in', requestId: request.id, login: this.#ways() }
    }
    const { principal, session, secret } = caller
    const { roles, namespaceRoles, tenantRoles, auth } = principal
    const within = [...namespaceRoles.values(), ...tenantRoles.values()]
    const { issuer } = config.adminAuth.oidc
    return {
      name: principal.by,
      issuer: session.person === null ? null : issuer,
      roles: [...new Set([...roles, ...within.flatMap((here) => [...here])])],
      namespaces: roles.size > 0 ? null : [...namespaceRoles.keys()],
      everywhere: [...roles],
      namespaceRoles: listsOf(namespaceRoles),
      tenantRoles: listsOf(tenantRoles),
      authenticatedAt: auth?.at == null ? null : rfc3339(auth.at * 1000),
      acr: auth?.acr ?? null,
      expiresAt: rfc3339(session.expiresAt),
      now: rfc3339(clock.now()),
      csrf: csrfOf(secret),
      login: session.person === null ? 'link' : 'oidc',
      version: build.version,
      stepUp: session.person === null ? {} : this.#stepUp(),
    }
  }

  #stepUp(): object {
    const { stepUp } = this.#parts.config.adminAuth
    return Object.fromEntries(
      STEP_UP_ACTIONS.filter((action) => isRequired(stepUp[action])).map((action) => [action, stepUp[action]]),
    )
  }

  #ways(): readonly object[] {
    const { login, console } = this.#parts
    const oidc = login === null ? [] : [{ kind: 'oidc', url: '/console/login' }]
    return console.token === null ? oidc : [...oidc, { kind: 'link', hint: 'plat console' }]
  }

  /** Returns the caller of a request with a valid session; null: there is none. */
  async #caller(request: FastifyRequest, reply: FastifyReply): Promise<BrowserCaller | null> {
    const { browsers, refusals } = this.#parts.console
    const secret = browsers.secretIn(request)
    if (secret === null) return null
    try {
      return await throttled(refusals, request.ip, () => browsers.identify(request, secret), 'invalid')
    } catch (error) {
      if (!(error instanceof AdminError) || error.code !== 'unauthenticated') throw error
      reply.header('set-cookie', browsers.cookie(request, null))
      return null
    }
  }

  /** Redirects to the identity provider. */
  async #begin(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { console, flows, login } = this.#parts
    if (login === null)
      throw new AdminError('not_found', 'people log in by adminAuth.oidc, which is off: use plat console')
    const { query } = request
    const browser = this.#browser(request) ?? flows.secret()
    const flow = flows.begin(browser, {
      redirectURI: `${console.browsers.origin(request)}/console/callback`,
      to: pageIn(queried(query, 'to')),
      acr: acrIn(queried(query, 'acr')),
      maxAge: maxAgeIn(queried(query, 'max_age')),
    })
    const url = await (await login()).url(flow)
    if (!(url instanceof URL)) return this.#failed(reply, url)
    reply.header('set-cookie', cookieOf(FLOW_COOKIE, browser, FLOW_SECONDS, 'Lax'))
    return redirect(reply, url.href)
  }

  /** The identity provider led back: begins a session under a new secret. */
  async #loggedIn(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { flows, login, console } = this.#parts
    const query = queryOf(request)
    const state = new URLSearchParams(query).get('state') ?? ''
    const browser = this.#browser(request)
    const flow = browser === null ? null : flows.open(browser, state)
    if (login === null || flow === null)
      return this.#failed(reply, {
        kind: 'failure',
        code: 'failed',
        why: 'the login is of another browser, or too old',
      })
    // Each attempt is a request to the identity provider.
    if (console.refusals.isThrottled(request.ip))
      throw new AdminError('rate_limited', 'too many logins from this address failed: try again later')
    reply.header('set-cookie', cookieOf(FLOW_COOKIE, '', 0, 'Lax'))
    const person = await (await login()).person(query, { ...flow, state })
    if ('kind' in person) {
      if (person.code !== 'denied') await console.refusals.refuse(request.ip, 'invalid')
      return this.#failed(reply, person)
    }
    await this.#begun(request, reply, person)
    return redirect(reply, flow.to)
  }

  /** The code of `plat console`: begins a session with the roles of the static token. */
  async #linked(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { console, flows } = this.#parts
    const { browsers, token, refusals } = console
    browsers.demandSameOrigin(request)
    const { code } = bodyAs(linkSchema, request.body)
    await throttled(
      refusals,
      request.ip,
      async () => {
        const link = token === null ? null : flows.link(code)
        if (link === null || !(await browsers.sessions.spend(link.id, link.until)))
          throw new AdminError('unauthenticated', 'this link is not valid any more: get a new one with plat console')
      },
      'invalid',
    )
    await this.#begun(request, reply, null)
    return reply.code(204).header('cache-control', 'no-store').send()
  }

  /** Ends the session, or all sessions of the person. */
  async #logout(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { browsers } = this.#parts.console
    const caller = await this.#caller(request, reply)
    if (caller === null) throw new AdminError('unauthenticated', 'you are not logged in')
    const { all = false } = bodyAs(logoutSchema, request.body ?? {})
    await (all ? browsers.sessions.endAll(caller.session) : browsers.sessions.end(caller.session.key))
    this.#record(request, { by: caller.principal.by, action: all ? 'logout everywhere' : 'logout' })
    return reply.code(204).header('set-cookie', browsers.cookie(request, null)).send()
  }

  /** Begins a session, and ends the one that the browser had. */
  async #begun(request: FastifyRequest, reply: FastifyReply, person: Person | null): Promise<void> {
    const { console, config } = this.#parts
    const { browsers, token } = console
    const old = browsers.secretIn(request)
    const { secret } = await browsers.sessions.begin(person, person === null ? token : null)
    if (old !== null) {
      const replaced = await browsers.sessions.find(old, request.ip)
      if (replaced !== null && replaced !== 'unread') await browsers.sessions.end(replaced.key)
    }
    reply.header('set-cookie', browsers.cookie(request, { secret, lifetimeMs: config.console.sessionSeconds * 1000 }))
    this.#record(request, { by: person === null ? 'token:admin' : `user:${person.user}`, action: 'login' })
  }

  #browser({ headers }: FastifyRequest): string | null {
    const browser = cookieIn(headers.cookie, FLOW_COOKIE)
    return browser !== null && SECRET.test(browser) ? browser : null
  }

  /** The page says why; the log says more. */
  #failed(reply: FastifyReply, { code, why }: LoginFailure): FastifyReply {
    this.#parts.log.warn({ code, why }, 'a login of the console failed')
    return redirect(reply, `/console/#login-error=${code}`)
  }

  #record(request: FastifyRequest, { by, action }: { readonly by: string; readonly action: string }): void {
    const { ledgers, log } = this.#parts
    const record = { kind: 'admin' as const, action: `console ${action}`, path: '/console', by, requestId: request.id }
    ledgers
      .of('')
      .append(record)
      .catch((error: unknown) =>
        log.error({ action: record.action, error: reasonOf(error) }, 'an admin action could not be recorded'),
      )
  }
}

function redirect(reply: FastifyReply, to: string): FastifyReply {
  return reply.code(303).header('cache-control', 'no-store').header('location', to).send()
}

/** Path below `/console/`, without the query. */
function pathOf({ url }: FastifyRequest): string {
  const end = url.indexOf('?')
  return url.slice('/console/'.length, end === -1 ? undefined : end)
}

function queryOf({ url }: FastifyRequest): string {
  const at = url.indexOf('?')
  return at === -1 ? '' : url.slice(at + 1)
}

/** A page to return to; anything else is the first page. */
function pageIn(text: string | null): string {
  return text !== null && text.length <= PAGE_MAX_CHARS && PAGE.test(text) ? text : '/console/'
}

function acrIn(text: string | null): string {
  if (text === null || text === '') return ''
  if (text.length <= 1_024 && /^[!-~]+( [!-~]+)*$/.test(text)) return text
  throw new AdminError('invalid_request', 'acr: must be values of acr, separated by spaces')
}

function maxAgeIn(text: string | null): number | null {
  if (text === null || text === '') return null
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new AdminError('invalid_request', 'max_age: must be a number of seconds')
}
