import { type Clock, type PoolObservers, whenReady } from '@plat/core'
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
    /** Audiences by namespace of the server; default: none. */
    readonly tokenExchangeAudiences?: Readonly<Record<string, readonly string[]>>
    readonly policyReloadSeconds: number
  }
  readonly pools?: PoolObservers<'exchanged_tokens'>
  /** Additional CA bundle for every server; null: none. */
  readonly extraCA: string | null
  /** Tokens of connected accounts; null: `tokenVault` is off. */
  readonly userTokens?: UserTokens | null
  /** Returns the broker token that a caller presented, or null for other issuers. */
  readonly sessionToken: (identity: Identity) => string | null
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly log: Log
}

/** Tokens of users, by server `<ns>/<name>` and provider. */
export interface UserTokens {
  missing(server: string, provider: string, identity: Identity): Denial | null
  of(server: string, provider: string, identity: Identity): Credential | Denial | Promise<Credential | Denial>
  renewed(server: string, provider: string, identity: Identity, refused: Credential): Promise<Credential | Denial>
}

/** Credentials that the gateway sends to its servers (docs/spec/crds.md, MCPServer `auth`), never the caller's token. */
export interface Credentials {
  /** Reads the credentials of these servers and drops all others. */
  follow(auths: readonly UpstreamAuth[]): Promise<void>
  /** Returns why no call of this caller to the server can succeed, or null if no reason is known. */
  missing(server: Pick<CredentialTarget, 'key' | 'auth'>, identity: Identity): Denial | null
  /** Returns the credential of a call, synchronously if cached, or `upstream_credential` if there is none. */
  of(server: CredentialTarget, identity: Identity): Credential | Denial | Promise<Credential | Denial>
  /** Returns a credential to replace one that the server refused, null if there is no other, or a denial with a remedy for the user. */
  renewed(server: CredentialTarget, identity: Identity, refused: Credential): Promise<Credential | Denial | null>
  close(): void
}

/** Creates the credentials feature. Files are reread every `policyReloadSeconds`. */
export function createCredentials(options: CredentialsOptions): Credentials {
  return new UpstreamCredentials(options)
}

/** Types whose credential is a fetched token. */
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
    return whenReady(this.#token(server, auth, identity)?.get() ?? noCredential, orDenied)
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
    // A concurrent call may have reread it.
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
    const withCertificate = (found: Credential | Denial) =>
      isDenial(found) ? found : this.#withCertificate(found, mtls)
    return whenReady(token, withCertificate)
  }

  #withCertificate(token: Credential, mtls: MtlsAuth | null): Credential | Denial {
    if (mtls === null) return token
    const clientCert = this.#folder.credential(mtls.credentialKey)?.clientCert ?? null
    return clientCert === null ? noCredential : { headers: token.headers, clientCert }
  }

  /**
   * Returns a denial unless the server may receive a token for this audience. Anyone who can create an MCPServer chooses its URL and
   * audience: without this check a server of one namespace could collect tokens for the APIs of another.
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

/** Returns the part that is read from files. */
function withoutUser(auth: UpstreamAuth): Exclude<UpstreamAuth, PerUser> | null {
  return auth.type === 'perUser' ? auth.mtls : auth
}

const noVault = deny('upstream_credential', 'the gateway stores no accounts of users: tokenVault.enabled is off')
const noCredential = deny('upstream_credential', 'the gateway has no usable credential for this server')

function isFetched(auth: UpstreamAuth): auth is Fetched {
  return auth.type === 'oauthClientCredentials' || auth.type === 'tokenExchange'
}

function orDenied(found: Credential | Denial | string): Credential | Denial {
  return typeof found === 'string' ? deny('upstream_credential', found) : found
}
