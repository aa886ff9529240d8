import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import {
  type Credential,
  type Denial,
  deny,
  type Identity,
  NO_CREDENTIAL,
  type UpstreamAuth,
} from '../../call/index.ts'
import { CredentialFolder } from './folder.ts'
import { type Shown, TokenSources } from './sources.ts'
import type { Token } from './tokens.ts'

export type { Shown } from './sources.ts'

export interface CredentialsOptions {
  readonly config: {
    readonly upstreamCredentialsDir: string
    readonly tokenExchangeURL: string
    readonly policyReloadSeconds: number
  }
  /** CA bundle for every server; null: none. */
  readonly extraCA: string | null
  /** The token that a caller has shown; null: it is not one of the broker's. */
  readonly sessionToken: (identity: Identity) => string | null
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly log: Log
}

/** What the gateway shows its servers (document 2, MCPServer `auth`). The caller's own token is never among it. */
export interface Credentials {
  /** Reads what these servers need, and forgets everything else. */
  follow(auths: readonly UpstreamAuth[]): Promise<void>
  /** Whether it is plain already that no call of the server can be made. */
  missing(auth: UpstreamAuth): boolean
  /** What a call shows its server: a plain value when it is known, `upstream_credential` when there is none. */
  of(server: Shown, identity: Identity): Credential | Denial | Promise<Credential | Denial>
  /** What to show instead of what the server has just refused; null: there is nothing else. */
  renewed(server: Shown, identity: Identity, refused: Credential): Promise<Credential | null>
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
    const filed = auths.filter((auth) => 'credentialKey' in auth)
    this.#sources.keep(new Set(filed.map((auth) => auth.credentialKey)))
    await this.#folder.follow(filed)
  }

  missing(auth: UpstreamAuth): boolean {
    switch (auth.type) {
      case 'none':
        return false
      case 'tokenExchange':
        return this.#options.config.tokenExchangeURL === ''
      case 'oauthClientCredentials':
        return this.#folder.client(auth.credentialKey) === null
      default:
        return this.#folder.credential(auth.credentialKey) === null
    }
  }

  of(server: Shown, identity: Identity): Credential | Denial | Promise<Credential | Denial> {
    const { auth } = server
    if (auth.type === 'none') return NO_CREDENTIAL
    if (!isFetched(auth)) return this.#folder.credential(auth.credentialKey) ?? noCredential
    const token = this.#token(server, auth, identity)?.get() ?? noCredential
    return token instanceof Promise ? token.then(orDenied) : orDenied(token)
  }

  async renewed(server: Shown, identity: Identity, refused: Credential): Promise<Credential | null> {
    const { auth } = server
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

  #token(server: Shown, auth: Fetched, identity: Identity): Token | null {
    if (auth.type === 'oauthClientCredentials') return this.#sources.granted(server, auth)
    const subject = this.#options.sessionToken(identity)
    return subject === null ? null : this.#sources.exchanged(server, auth.audience, identity, subject)
  }
}

const noCredential = deny('upstream_credential', 'the gateway has no usable credential for this server')

function isFetched(auth: UpstreamAuth): auth is Fetched {
  return auth.type === 'oauthClientCredentials' || auth.type === 'tokenExchange'
}

function orDenied(found: Credential | Denial | string): Credential | Denial {
  return typeof found === 'string' ? deny('upstream_credential', found) : found
}
