import type { Clock, PoolObservers } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import {
  type Credential,
  type Denial,
  deny,
  type Identity,
  isDenial,
  type MtlsAuth,
  NO_CREDENTIAL,
  type UpstreamAuth,
} from '../../call/index.ts'
import { CredentialFolder } from './folder.ts'
import { type CredentialTarget, TokenSources } from './sources.ts'
import type { Token } from './tokens.ts'

export type { CredentialTarget } from './sources.ts'

export interface CredentialsOptions {
  readonly config: {
    readonly upstreamCredentialsDir: string
    readonly tokenExchangeURL: string
    /** By namespace of the server; default: none is listed. */
    readonly tokenExchangeAudiences?: Readonly<Record<string, readonly string[]>>
    readonly policyReloadSeconds: number
  }
  readonly pools?: PoolObservers<'exchanged_tokens'>
  /** CA bundle for every server; null: none. */
  readonly extraCA: string | null
  /** The tokens that users have connected; null: `tokenVault` is off. */
  readonly userTokens?: UserTokens | null
  /** The token that a caller has shown; null: it is not one of the broker's. */
  readonly sessionToken: (identity: Identity) => string | null
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly log: Log
}

/** Users' own tokens, by `<ns>/<name>` of the server and provider. */
export interface UserTokens {
  missing(server: string, provider: string, identity: Identity): Denial | null
  of(server: string, provider: string, identity: Identity): Credential | Denial | Promise<Credential | Denial>
  renewed(server: string, provider: string, identity: Identity, refused: Credential): Promise<Credential | Denial>
}

/** What the gateway shows its servers (docs/spec/crds.md, MCPServer `auth`). The caller's own token is never among it. */
export interface Credentials {
  /** Reads what these servers need, and forgets everything else. */
  follow(auths: readonly UpstreamAuth[]): Promise<void>
  /** Why it is plain already that this caller can make no call of the server; null: nothing is known against it. */
  missing(server: Pick<CredentialTarget, 'key' | 'auth'>, identity: Identity): Denial | null
  /** What a call shows its server: a plain value when it is known, `upstream_credential` when there is none. */
  of(server: CredentialTarget, identity: Identity): Credential | Denial | Promise<Credential | Denial>
  /** What to show instead of what the server has just refused; null: there is nothing else; a denial says what its user can do. */
  renewed(server: CredentialTarget, identity: Identity, refused: Credential): Promise<Credential | Denial | null>
  close(): void
}

/** Builds what holds credentials; files are read again every `policyReloadSeconds`. */
export function createCredentials(options: CredentialsOptions): Credentials {
  return new UpstreamCredentials(options)
}

/** Types whose credential is a token that is fetched. */
type Fetched = Extract<UpstreamAuth, { type: 'oauthClientCredentials' | 'tokenExchange' }>

class UpstreamCredentials implements Credentials {
  readonly #options: CredentialsOptions
  readonly #folder: CredentialFolder
  readonly #sources: TokenSources
  readonly #stopReading: () => void

  constructor(options: CredentialsOptions) {
    const { config, clock, log } = options
    const folder = new CredentialFolder(config.upstreamCredentialsDir, log)
    this.#options = options
    this.#folder = folder
    this.#sources = new TokenSources({
      ...options,
      tokenExchangeURL: config.tokenExchangeURL,
      client: (key) => folder.client(key),
    })
    this.#stopReading = clock.every(config.policyReloadSeconds * 1000, () => void folder.refresh())
  }

  async follow(auths: readonly UpstreamAuth[]): Promise<void> {
    const filed = auths.map(withoutUser).filter((auth) => auth !== null && 'credentialKey' in auth)
    this.#sources.keep(new Set(filed.map((auth) => auth.credentialKey)))
    await this.#folder.follow(filed)
  }

  missing({ key, auth }: Pick<CredentialTarget, 'key' | 'auth'>, identity: Identity): Denial | null {
    switch (auth.type) {
      case 'none':
        return null
      case 'perUser':
        if (auth.mtls !== null && this.#folder.credential(auth.mtls.credentialKey) === null) return noCredential
        if (!this.#options.userTokens) return noVault
        return this.#options.userTokens.missing(key, auth.provider, identity)
      case 'tokenExchange':
        if (this.#options.config.tokenExchangeURL === '') return noCredential
        return this.#refusedAudience(key, auth.audience, identity)
      case 'oauthClientCredentials':
        return this.#folder.client(auth.credentialKey) === null ? noCredential : null
      default:
        return this.#folder.credential(auth.credentialKey) === null ? noCredential : null
    }
  }

  of(server: CredentialTarget, identity: Identity): Credential | Denial | Promise<Credential | Denial> {
    const { auth } = server
    if (auth.type === 'none') return NO_CREDENTIAL
    if (auth.type === 'perUser') return this.#ofUser(server.key, auth, identity)
    if (auth.type === 'tokenExchange') {
      const refused = this.#refusedAudience(server.key, auth.audience, identity)
      if (refused !== null) return refused
    }
    if (!isFetched(auth)) return this.#folder.credential(auth.credentialKey) ?? noCredential
    const token = this.#token(server, auth, identity)?.get() ?? noCredential
    return token instanceof Promise ? token.then(orDenied) : orDenied(token)
  }

  async renewed(
    server: CredentialTarget,
    identity: Identity,
    refused: Credential,
  ): Promise<Credential | Denial | null> {
    const { auth } = server
    if (auth.type === 'perUser') {
      const { provider, mtls } = auth
      const next = (await this.#options.userTokens?.renewed(server.key, provider, identity, refused)) ?? null
      return next === null || isDenial(next) ? next : this.#withCertificate(next, mtls)
    }
    if (auth.type === 'none' || auth.type === 'mtls') return null
    if (isFetched(auth)) return (await this.#token(server, auth, identity)?.renewed(refused)) ?? null
    const key = auth.credentialKey
    // Somebody else may have read it since.
    if (this.#folder.credential(key) === refused) await this.#folder.read(key)
    const next = this.#folder.credential(key)
    return next === refused ? null : next
  }

  close(): void {
    this.#stopReading()
  }

  #ofUser(
    server: string,
    { provider, mtls }: PerUser,
    identity: Identity,
  ): Credential | Denial | Promise<Credential | Denial> {
    const token = this.#options.userTokens?.of(server, provider, identity) ?? noVault
    const shown = (found: Credential | Denial) => (isDenial(found) ? found : this.#withCertificate(found, mtls))
    return token instanceof Promise ? token.then(shown) : shown(token)
  }

  #withCertificate(token: Credential, mtls: MtlsAuth | null): Credential | Denial {
    if (mtls === null) return token
    const clientCert = this.#folder.credential(mtls.credentialKey)?.clientCert ?? null
    return clientCert === null ? noCredential : { headers: token.headers, clientCert }
  }

  /**
   * Whoever may create an MCPServer chooses its URL and its audience: without this check a server of one namespace could collect tokens for the
   * APIs of another. Returns null where the server may receive the token.
   */
  #refusedAudience(server: string, audience: string, caller: Identity): Denial | null {
    const namespace = server.slice(0, server.indexOf('/'))
    const listed = this.#options.config.tokenExchangeAudiences ?? {}
    const audiences = Object.hasOwn(listed, namespace) ? listed[namespace] : undefined
    if (audiences === undefined ? namespace === caller.namespace : audiences.includes(audience)) return null
    return deny(
      'upstream_credential',
      `tokenExchangeAudiences does not list the audience ${audience} for servers of the namespace ${namespace}`,
    )
  }

  #token(server: CredentialTarget, auth: Fetched, identity: Identity): Token | null {
    if (auth.type === 'oauthClientCredentials') return this.#sources.granted(server, auth)
    const subject = this.#options.sessionToken(identity)
    return subject === null ? null : this.#sources.exchanged(server, auth.audience, identity, subject)
  }
}

type PerUser = Extract<UpstreamAuth, { type: 'perUser' }>

/** What of it stands in files. */
function withoutUser(auth: UpstreamAuth): Exclude<UpstreamAuth, PerUser> | null {
  return auth.type === 'perUser' ? auth.mtls : auth
}

const noVault = deny('upstream_credential', 'the gateway keeps no accounts of users: tokenVault.enabled is off')
const noCredential = deny('upstream_credential', 'the gateway has no usable credential for this server')

function isFetched(auth: UpstreamAuth): auth is Fetched {
  return auth.type === 'oauthClientCredentials' || auth.type === 'tokenExchange'
}

function orDenied(found: Credential | Denial | string): Credential | Denial {
  return typeof found === 'string' ? deny('upstream_credential', found) : found
}
