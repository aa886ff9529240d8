import { reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import { StateUnreachableError } from '@plat/state'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { BrowserCookie } from './flow/browser.ts'
import type { Flow, Flows, Step } from './flow/flows.ts'
import type { Login } from './flow/login.ts'
import {
  confirmPage,
  connectedPage,
  disconnectedPage,
  failedPage,
  leavingPage,
  PAGE_HEADERS,
  type Page,
} from './flow/pages.ts'
import { isRefusal, type Refusal } from './providers/client.ts'
import type { Provider } from './providers/provider.ts'
import type { RevokedAccounts } from './revoked-accounts.ts'
import type { Owner, Tokens } from './store/account.ts'
import type { Vault } from './vault.ts'

/** Maximum size of a form, in bytes: a sealed flow may contain the tokens of a login. */
const MAX_FORM_BYTES = 64 * 1024

export interface ConnectParts {
  readonly vault: Vault
  readonly providers: ReadonlyMap<string, Provider>
  readonly login: Login
  readonly flows: Flows
  readonly cookie: BrowserCookie
  /** `<publicBaseURL>/v1/connect` */
  readonly base: string
  readonly realm: string
  readonly removals: Pick<RevokedAccounts, 'remove'>
  readonly isRevoked: (user: string) => boolean
  readonly log: Log
}

/**
 * `GET /v1/connect/{provider}` (docs/spec/gateway.md): login, confirmation, consent at the provider; each step is bound to the browser
 * and usable once. The account belongs to the user who logs in, not to the creator of the link.
 */
export class ConnectRoutes {
  readonly #parts: ConnectParts

  constructor(parts: ConnectParts) {
    this.#parts = parts
  }

  mount(app: FastifyInstance): void {
    app.register(async (scope) => {
      scope.addContentTypeParser(
        'application/x-www-form-urlencoded',
        { parseAs: 'string', bodyLimit: MAX_FORM_BYTES },
        async (_: FastifyRequest, body: string) => new URLSearchParams(body),
      )
      scope.setErrorHandler((error, _, reply) => {
        // The listener handles malformed requests; other errors are shown to the user as a page.
        if (error instanceof Error && 'statusCode' in error) throw error
        this.#parts.log.error({ error: reasonOf(error) }, 'an account could not be connected')
        if (error instanceof StateUnreachableError) return show(reply, stateAway)
        return show(reply, failedPage(500, 'Something went wrong on our side. Try again later.', null))
      })
      scope.get('/v1/connect/callback', (request, reply) => this.#loggedIn(request, reply))
      scope.get('/v1/connect/:provider', (request, reply) => this.#begin(request, reply))
      scope.post('/v1/connect/:provider', (request, reply) => this.#confirmed(request, reply))
      scope.get('/v1/connect/:provider/callback', (request, reply) => this.#consented(request, reply))
    })
  }

  /** Start of a flow: redirects to the login. */
  async #begin(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { flows, login, cookie, base } = this.#parts
    const provider = this.#provider(request)
    if (provider === null) return show(reply, failedPage(404, 'There is no such provider.', null))
    const browser = cookie.read(request.headers.cookie) ?? flows.secret()
    const flow = flows.begin(provider.name, new URLSearchParams(queryOf(request)).get('tenant') ?? '')
    const state = flows.seal('login', browser, flow)
    const to = await login.loginURL({ ...flow, state, redirectURI: `${base}/callback` })
    if (isRefusal(to)) return this.#refused(reply, provider, to)
    reply.header('set-cookie', cookie.write(browser))
    return reply.code(303).header('cache-control', 'no-store').header('location', to.href).send()
  }

  /** Redirect of the login: shows the confirmation page with the user's name. */
  async #loggedIn(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { flows, login, base, vault } = this.#parts
    const opened = this.#open('login', request, stateOf(request))
    if (opened === null) return show(reply, strange)
    const { flow, provider, browser, text: state } = opened
    const who = await login.identify(queryOf(request), { ...flow, state, redirectURI: `${base}/callback` })
    if (isRefusal(who)) return this.#refused(reply, provider, who)
    const { user } = who
    if (!(await flows.spend(flow, user))) return show(reply, strange)
    if (this.#parts.isRevoked(user)) return show(reply, revokedUser)
    const next = flows.next(flow, { user, login: provider.grant === 'id-jag' ? who.tokens : null })
    const page = confirmPage({
      user,
      provider,
      tenant: flow.tenant,
      isConnected: vault.account(this.#owner(next)) !== null,
      flow: flows.seal('confirm', browser, next),
      action: `${base}/${provider.name}`,
    })
    return show(reply, page)
  }

  /** Submission of the confirmation form. */
  async #confirmed(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams()
    const opened = await this.#take('confirm', request, form.get('flow') ?? '')
    if (opened === null) return show(reply, strange)
    const { flow, provider, browser } = opened
    if (form.get('action') === 'disconnect') return this.#disconnect(reply, provider, flow)
    if (provider.grant === 'id-jag' && flow.login !== null) {
      return this.#keep(reply, opened, await provider.vouched(flow.login))
    }
    const next = this.#parts.flows.next(flow, { user: flow.user, login: null })
    const state = this.#parts.flows.seal('consent', browser, next)
    const to = await provider.consentURL({ ...next, state, redirectURI: this.#redirectOf(provider) })
    if (isRefusal(to)) return this.#refused(reply, provider, to)
    return show(reply, leavingPage(provider.title, to))
  }

  /** Redirect of the provider. */
  async #consented(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const opened = await this.#take('consent', request, stateOf(request))
    if (opened === null) return show(reply, strange)
    const { flow, provider, text: state } = opened
    const redirectURI = this.#redirectOf(provider)
    return this.#keep(reply, opened, await provider.redeem(queryOf(request), { ...flow, state, redirectURI }))
  }

  async #keep(reply: FastifyReply, { flow, provider }: ClaimedFlow, tokens: Tokens | Refusal): Promise<FastifyReply> {
    if (isRefusal(tokens)) return this.#refused(reply, provider, tokens)
    const { vault, removals, isRevoked } = this.#parts
    const owner = this.#owner(flow)
    await vault.connect(owner, tokens)
    // The user may have been revoked during the consent.
    if (isRevoked(flow.user)) {
      await removals.remove([owner])
      return show(reply, revokedUser)
    }
    return show(reply, connectedPage(provider.title, flow.user))
  }

  async #disconnect(reply: FastifyReply, provider: Provider, flow: Flow): Promise<FastifyReply> {
    const { vault } = this.#parts
    await vault.remove(this.#owner(flow), 'disconnected')
    return show(reply, disconnectedPage(provider.title, flow.user))
  }

  #refused(reply: FastifyReply, { name, title }: Provider, { code, why }: Refusal): FastifyReply {
    this.#parts.log.warn({ provider: name, problem: why }, 'an account was not connected')
    const again = `${this.#parts.base}/${name}`
    if (code === 'access_denied') return show(reply, failedPage(403, 'Access was not granted.', again))
    return show(reply, failedPage(502, `The login or ${title} did not agree: ${why}.`, again))
  }

  #provider(request: FastifyRequest): Provider | null {
    const { params } = request
    const name = typeof params === 'object' && params !== null && 'provider' in params ? params.provider : null
    return typeof name === 'string' ? (this.#parts.providers.get(name) ?? null) : null
  }

  /** Returns the step of this request, or null if it belongs to another browser or provider, or has expired. */
  #open(step: Step, request: FastifyRequest, text: string): ClaimedFlow | null {
    const { flows, cookie, providers } = this.#parts
    const browser = cookie.read(request.headers.cookie)
    const flow = browser === null ? null : flows.open(step, browser, text)
    const provider = flow === null ? undefined : providers.get(flow.provider)
    if (browser === null || flow === null || provider === undefined) return null
    const isHere = step === 'login' || this.#provider(request) === provider
    return isHere ? { flow, provider, browser, text } : null
  }

  /** The same, and marks the step as used. */
  async #take(step: Step, request: FastifyRequest, text: string): Promise<ClaimedFlow | null> {
    const opened = this.#open(step, request, text)
    return opened !== null && (await this.#parts.flows.spend(opened.flow, opened.flow.user)) ? opened : null
  }

  #redirectOf({ name }: Provider): string {
    return `${this.#parts.base}/${name}/callback`
  }

  #owner({ tenant, user, provider }: Flow): Owner {
    return { tenant, realm: this.#parts.realm, user, provider }
  }
}

interface ClaimedFlow {
  readonly flow: Flow
  readonly provider: Provider
  readonly browser: string
  /** As received, sealed. */
  readonly text: string
}

const strange = failedPage(
  400,
  'This was not begun in this browser, was done already, or took too long. Open the link to connect your account again.',
  null,
)
const stateAway = failedPage(
  503,
  'The gateway cannot store this now. Open the link to connect your account again later.',
  null,
)
const revokedUser = failedPage(403, 'You may not connect accounts: your access was revoked.', null)

/** Returns an empty text unless the parameter occurs exactly once. */
function stateOf(request: FastifyRequest): string {
  const states = new URLSearchParams(queryOf(request)).getAll('state')
  return states.length === 1 ? (states[0] ?? '') : ''
}

function queryOf({ url }: FastifyRequest): string {
  const at = url.indexOf('?')
  return at === -1 ? '' : url.slice(at + 1)
}

function show(reply: FastifyReply, { status, html }: Page): FastifyReply {
  return reply.code(status).headers(PAGE_HEADERS).send(html)
}
