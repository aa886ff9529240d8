import { type Clock, ExpiringMap, type PoolObservers, watchedPool } from '@plat/core'
import { type Dialer, joinedBundles } from '@plat/http'
import type { Log } from '@plat/process'
import { agentOf, type Identity, type UpstreamAuth } from '../../call/index.ts'
import { askToken, type Grant, type TokenRequest } from './endpoint.ts'
import type { OAuthClient } from './secret.ts'
import { Token } from './tokens.ts'

/** docs/spec/crds.md, `oauthClientCredentials`: tokens are cached until expiry minus 60 s. */
const OAUTH_MARGIN_MS = 60_000
/** The same margin for exchanged tokens, in milliseconds: they live for minutes. */
const EXCHANGE_MARGIN_MS = 10_000

/** RFC 8693. */
const EXCHANGE_GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange'
const JWT = 'urn:ietf:params:oauth:token-type:jwt'

/** The parts of a server that credentials depend on. */
export interface CredentialTarget {
  /** `<ns>/<name>` */
  readonly key: string
  readonly auth: UpstreamAuth
  /** PEM bundle trusted in addition to the system roots. */
  readonly caPEM: string | null
}

type OAuth = Extract<UpstreamAuth, { type: 'oauthClientCredentials' }>

export interface SourcesOptions {
  /** docs/spec/gateway.md, `tokenExchangeURL`; empty: token exchange is off. */
  readonly tokenExchangeURL: string
  /** Additional CA bundle for every server; null: none. */
  readonly extraCA: string | null
  /** Returns the current client, or null if its files are unusable. */
  readonly client: (credentialKey: string) => OAuthClient | null
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly pools?: PoolObservers<'exchanged_tokens'> | undefined
  readonly clock: Clock
  readonly log: Log
}

interface Granted {
  readonly auth: OAuth
  readonly clientId: string
  /** Cache key: client, grant parameters and trust. */
  readonly grant: string
  readonly token: Token
}

/** Tokens that the gateway fetches for its servers. */
export class TokenSources {
  readonly #options: SourcesOptions
  /** By credential key. */
  readonly #granted = new Map<string, Granted>()
  /** By session token and audience. */
  readonly #exchanged: ExpiringMap<Token>

  constructor(options: SourcesOptions) {
    this.#options = options
    this.#exchanged = new ExpiringMap({
      clock: options.clock,
      cap: watchedPool({ name: 'exchanged_tokens', observer: options.pools?.of('exchanged_tokens') }),
    })
  }

  /** Drops all other grants. */
  keep(credentialKeys: ReadonlySet<string>): void {
    for (const key of this.#granted.keys()) if (!credentialKeys.has(key)) this.#granted.delete(key)
  }

  /** Returns the token of a client credentials grant (RFC 6749, section 4.4), shared by all calls; null if there is no client. */
  granted({ key, caPEM }: CredentialTarget, auth: OAuth): Token | null {
    const client = this.#options.client(auth.credentialKey)
    if (client === null) return null
    const held = this.#granted.get(auth.credentialKey)
    if (held !== undefined && held.auth === auth && held.clientId === client.id) return held.token
    // A reloaded registry has new but equal objects, and a new secret of the same client does not invalidate a token.
    const grant = JSON.stringify([client.id, auth, caPEM])
    const ask = () => this.#askGrant(key, auth, caPEM)
    const token = held?.grant === grant ? held.token : this.#token(OAUTH_MARGIN_MS, ask)
    this.#granted.set(auth.credentialKey, { auth, clientId: client.id, grant, token })
    return token
  }

  /** Returns the token exchanged at the broker for a session's token (RFC 8693); null if there is no broker. */
  exchanged({ key: server }: CredentialTarget, audience: string, identity: Identity, subject: string): Token | null {
    const { tokenExchangeURL: url, extraCA: caPEM } = this.#options
    if (url === '') return null
    const { jti, expiresAt } = identity
    const key = `${jti} ${audience}`
    const known = this.#exchanged.get(key)
    if (known !== null) return known
    const form = { grant_type: EXCHANGE_GRANT, subject_token: subject, subject_token_type: JWT, audience }
    const request = { url, form: new URLSearchParams(form), client: null, caPEM }
    const token = this.#token(EXCHANGE_MARGIN_MS, () => this.#ask(server, request))
    // It does not outlive the session token that it was exchanged for.
    this.#exchanged.insert(key, token, expiresAt, agentOf(identity))
    return token
  }

  #token(marginMs: number, ask: () => Promise<Grant | string>): Token {
    return new Token({ clock: this.#options.clock, marginMs, ask })
  }

  async #askGrant(server: string, { credentialKey, oauth }: OAuth, caPEM: string | null): Promise<Grant | string> {
    const client = this.#options.client(credentialKey)
    if (client === null) return 'the credential of the client is gone'
    const form = new URLSearchParams({ grant_type: 'client_credentials' })
    if (oauth.scopes.length > 0) form.set('scope', oauth.scopes.join(' '))
    if (oauth.audience !== null) form.set('audience', oauth.audience)
    if (oauth.resource !== null) form.set('resource', oauth.resource)
    const trusted = joinedBundles([caPEM, this.#options.extraCA])
    return this.#ask(server, { url: oauth.tokenURL, form, client, caPEM: trusted })
  }

  async #ask(server: string, request: TokenRequest): Promise<Grant | string> {
    const answer = await askToken(this.#options.dialer, request)
    if (typeof answer === 'string') this.#options.log.warn({ server, problem: answer }, 'no upstream token')
    return answer
  }
}
