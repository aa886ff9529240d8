import { type Clock, reasonOf } from '@plat/core'
import { KeyServiceError } from '@plat/keys'
import type { Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import { type Credential, type Denial, deny, type Identity } from '../../call/index.ts'
import { type OwnerRules, personOf } from './owner.ts'
import { isRefusal, type Refusal } from './providers/client.ts'
import type { Provider } from './providers/provider.ts'
import { accountRecord } from './record.ts'
import { type Owner, ownerKey, type RemovedWhy, type Tokens } from './store/account.ts'
import type { Accounts, StoredAccount } from './store/accounts.ts'

/** Renewable tokens are not used this long before they expire, in milliseconds. */
const MARGIN_MS = 60_000
/** Delay before the next attempt after a failed renewal, in milliseconds. */
const ASK_AGAIN_MS = 1_000
/** Minimum age of a token that is renewed because a server refused it, in milliseconds: its successor would be refused as well. */
const LEAST_AGE_MS = 10_000

/** Returns the URL where a user connects an account, for agents of this tenant. */
export function connectURL(base: string, provider: string, tenant: string): string {
  return `${base}/${provider}${tenant === '' ? '' : `?tenant=${encodeURIComponent(tenant)}`}`
}

/** The part of a provider that the vault uses. */
export type VaultProvider = Pick<Provider, 'name' | 'title' | 'serves' | 'isFor' | 'renews' | 'renew' | 'revoke'>

export interface VaultParts {
  readonly accounts: Accounts
  readonly providers: ReadonlyMap<string, VaultProvider>
  readonly rules: OwnerRules
  /** Returns the URL where a user connects an account of this provider. */
  readonly connectURL: (provider: string, tenant: string) => string
  readonly record: (tenant: string, record: Rec) => void
  readonly clock: Clock
  readonly log: Log
}

/** An account with decrypted tokens. */
interface Held {
  readonly tokens: Tokens
  readonly credential: Credential
  /** End of use of the token, in milliseconds since the epoch. */
  readonly freshUntil: number
  askAgainAt: number
}

interface RemoveOptions {
  /** The person who removes it, for the record. */
  readonly by?: string | undefined
  readonly isWanted?: (() => boolean) | undefined
}

export interface UserTokens {
  /** Returns why no call of this caller can succeed, or null if no reason is known. */
  missing(server: string, provider: string, identity: Identity): Denial | null
  /** Synchronous if the token is cached. */
  of(server: string, provider: string, identity: Identity): Credential | Denial | Promise<Credential | Denial>
  /** Returns a credential to replace one that the server refused, or a denial with a remedy for the user. */
  renewed(server: string, provider: string, identity: Identity, refused: Credential): Promise<Credential | Denial>
}

/** OAuth tokens of users (docs/spec/crds.md, `auth.perUser`): authorizes their use and renews them. */
export class Vault implements UserTokens {
  readonly #parts: VaultParts
  /** Decrypted tokens by account state. */
  readonly #held = new WeakMap<StoredAccount, Held>()
  /** Renewals in progress by owner, shared by concurrent calls. */
  readonly #asking = new Map<string, Promise<Credential | Denial>>()
  readonly #leaving = new Set<Promise<void>>()

  constructor(parts: VaultParts) {
    this.#parts = parts
  }

  missing(server: string, provider: string, identity: Identity): Denial | null {
    const found = this.#find(server, provider, identity)
    return 'stored' in found ? null : found
  }

  of(server: string, provider: string, identity: Identity): Credential | Denial | Promise<Credential | Denial> {
    const found = this.#find(server, provider, identity)
    if (!('stored' in found)) return found
    const held = this.#held.get(found.stored)
    if (held !== undefined && this.#parts.clock.now() < held.freshUntil) return held.credential
    return this.#once(found, false)
  }

  async renewed(
    server: string,
    provider: string,
    identity: Identity,
    refused: Credential,
  ): Promise<Credential | Denial> {
    const found = this.#find(server, provider, identity)
    if (!('stored' in found)) return found
    const held = this.#held.get(found.stored)
    // Another call has renewed the token meanwhile.
    if (held === undefined || held.credential.headers !== refused.headers) return this.of(server, provider, identity)
    const { tokens } = held
    const isYoung = this.#parts.clock.now() < tokens.obtainedAt + LEAST_AGE_MS
    if (isYoung || !found.provider.renews(tokens)) {
      return this.#connect(
        found.provider,
        found.stored.account.tenant,
        `the server does not accept your ${found.provider.title} account`,
      )
    }
    return this.#once(found, true)
  }

  /** Stores the tokens of a consent. */
  async connect(owner: Owner, tokens: Tokens): Promise<void> {
    await this.#parts.accounts.connect(owner, tokens)
    this.#record(owner, 'connected', tokens.scopes)
  }

  account(owner: Owner): StoredAccount | null {
    return this.#parts.accounts.get(ownerKey(owner))
  }

  /**
   * Removes an account and revokes its tokens at the provider. Returns false if there is none. `isWanted` is called once the tokens are
   * decrypted, which may take as long as the key service: the account stays if it returns false.
   */
  async remove(owner: Owner, why: RemovedWhy, { by, isWanted }: RemoveOptions = {}): Promise<boolean> {
    for (;;) {
      const stored = this.account(owner)
      if (stored === null) return false
      // Retried if a concurrent call renewed the token, so that the new one is revoked as well.
      if (await this.#remove(stored, why, { by, isWanted })) return true
    }
  }

  /** Waits for pending revocations at providers. */
  async close(): Promise<void> {
    await Promise.all(this.#leaving)
  }

  #find(server: string, name: string, identity: Identity): UsableAccount | Denial {
    const { providers, rules, accounts } = this.#parts
    const provider = providers.get(name)
    if (provider === undefined) return refused(`tokenVault.providers has no provider ${name}`)
    if (!provider.serves(server)) return refused(`tokens of ${name} are not for this server (allowedServers)`)
    if (!provider.isFor(identity.namespace)) {
      return refused(`tokens of ${name} are not for agents of this namespace (allowedNamespaces)`)
    }
    const person = personOf(identity, rules)
    if (typeof person === 'string') return refused(person)
    const key = ownerKey({ tenant: identity.tenant, ...person, provider: name })
    const stored = accounts.get(key)
    if (stored === null)
      return this.#connect(provider, identity.tenant, `your ${provider.title} account is not connected`)
    return { key, stored, provider }
  }

  #connect({ name }: VaultProvider, tenant: string, why: string): Denial {
    const connectURL = this.#parts.connectURL(name, tenant)
    return deny('upstream_credential', `${why}: open ${connectURL} in a browser to connect it`, {
      data: { connectURL, provider: name },
    })
  }

  #once(found: UsableAccount, isRefused: boolean): Promise<Credential | Denial> {
    const asking = this.#asking.get(found.key)
    if (asking !== undefined) return asking
    const refreshing = this.#fresh(found, isRefused).finally(() => this.#asking.delete(found.key))
    this.#asking.set(found.key, refreshing)
    return refreshing
  }

  /** `isRefused`: a server refused the current token. */
  async #fresh({ key, stored, provider }: UsableAccount, isRefused: boolean): Promise<Credential | Denial> {
    const { accounts, clock } = this.#parts
    const held = this.#held.get(stored) ?? (await this.#open(stored, provider))
    if (held === 'unavailable') return notDecrypted
    if (held === null)
      return this.#connect(provider, stored.account.tenant, `your ${provider.title} account cannot be opened any more`)
    if (!isRefused && clock.now() < held.freshUntil) return held.credential
    const { tokens } = held
    const lasts = !isRefused && clock.now() < (tokens.expiresAt ?? Number.POSITIVE_INFINITY)
    if (!provider.renews(tokens)) {
      return lasts
        ? held.credential
        : this.#connect(provider, stored.account.tenant, `your ${provider.title} account has expired`)
    }
    const next = clock.now() < held.askAgainAt ? null : await provider.renew(tokens)
    if (next === null || isRefusal(next)) {
      if (next?.code === 'invalid_grant') return this.#ended(stored, provider)
      if (next !== null) this.#postpone(held, stored, next)
      return lasts ? held.credential : noToken
    }
    const renewed = await this.#keep(stored, provider, next)
    if (renewed !== null) return renewed.credential
    const other = accounts.get(key)
    if (other !== null) return this.#fresh({ key, stored: other, provider }, false)
    // The account was removed during the renewal, so the new tokens must be revoked here.
    this.#revoke(provider, next)
    return this.#connect(provider, stored.account.tenant, `your ${provider.title} account is not connected`)
  }

  async #open(stored: StoredAccount, provider: VaultProvider): Promise<Held | 'unavailable' | null> {
    const { accounts, log } = this.#parts
    let tokens: Tokens | null
    try {
      tokens = await accounts.tokens(stored)
    } catch (error) {
      if (!(error instanceof KeyServiceError)) throw error
      return 'unavailable'
    }
    if (tokens === null) {
      log.error(
        { account: stored.id, provider: provider.name },
        'a connected account cannot be opened: decryption failed',
      )
      return null
    }
    // Re-encrypts tokens of a retired key on use.
    const current = accounts.isStale(stored) ? await this.#keep(stored, provider, tokens) : null
    return current ?? this.#hold(stored, provider, tokens)
  }

  /**
   * Returns null if the account has changed meanwhile. Tokens that cannot be stored are still used: the provider has invalidated their
   * predecessors.
   */
  async #keep(stored: StoredAccount, provider: VaultProvider, tokens: Tokens): Promise<Held | null> {
    const { accounts, log } = this.#parts
    try {
      const after = await accounts.renew(stored, tokens)
      return after === null ? null : this.#hold(after, provider, tokens)
    } catch (error) {
      log.error({ account: stored.id, error: reasonOf(error) }, 'the tokens of an account could not be stored')
      return this.#hold(stored, provider, tokens)
    }
  }

  #hold(stored: StoredAccount, provider: VaultProvider, tokens: Tokens): Held {
    const held: Held = {
      tokens,
      credential: { headers: { authorization: `Bearer ${tokens.accessToken}` }, clientCert: null },
      freshUntil: freshUntil(tokens, provider.renews(tokens)),
      askAgainAt: 0,
    }
    this.#held.set(stored, held)
    return held
  }

  async #ended(stored: StoredAccount, provider: VaultProvider): Promise<Denial> {
    await this.#remove(stored, 'invalid_grant')
    return this.#connect(provider, stored.account.tenant, `${provider.title} has ended the connection of your account`)
  }

  #postpone(held: Held, { id }: StoredAccount, { why }: Refusal): void {
    const { clock, log } = this.#parts
    held.askAgainAt = clock.now() + ASK_AGAIN_MS
    log.warn({ account: id, problem: why }, 'the token of a connected account could not be refreshed')
  }

  /** Returns false if the account has changed meanwhile. */
  async #remove(stored: StoredAccount, why: RemovedWhy, { by, isWanted }: RemoveOptions = {}): Promise<boolean> {
    const { accounts, providers } = this.#parts
    // Nothing is revoked for a grant that the provider has ended, so the key is not needed.
    const isEnded = why === 'invalid_grant'
    const tokens = isEnded ? null : (this.#held.get(stored)?.tokens ?? (await accounts.tokens(stored)))
    if (isWanted?.() === false) return true
    if (!(await accounts.remove(stored, why))) return false
    this.#record(stored.account, why, stored.account.scopes, by)
    const provider = providers.get(stored.account.provider)
    if (tokens !== null && provider !== undefined) this.#revoke(provider, tokens)
    return true
  }

  #revoke(provider: VaultProvider, tokens: Tokens): void {
    const { log } = this.#parts
    const revoking = provider.revoke(tokens).then((fault) => {
      this.#leaving.delete(revoking)
      if (fault !== null) {
        log.warn({ provider: provider.name, problem: fault.why }, 'a provider did not revoke the tokens of an account')
      }
    })
    this.#leaving.add(revoking)
  }

  #record(owner: Owner, event: string, scopes: readonly string[], by?: string): void {
    this.#parts.record(owner.tenant, accountRecord(owner, event, scopes, by))
  }
}

/** An account that a call can use. */
interface UsableAccount {
  readonly key: string
  readonly stored: StoredAccount
  readonly provider: VaultProvider
}

function refused(why: string): Denial {
  return deny('upstream_credential', why)
}

const notDecrypted = deny('state_unavailable', 'the key service does not decrypt connected accounts now')

const noToken = deny('upstream_credential', 'the provider issues no token now', { retryAfterMs: ASK_AGAIN_MS })

/** Returns the end of use. For tokens that live less than twice the margin it is half of their lifetime. */
function freshUntil({ expiresAt, obtainedAt }: Tokens, renews: boolean): number {
  if (expiresAt === null) return Number.POSITIVE_INFINITY
  return renews ? expiresAt - Math.min(MARGIN_MS, (expiresAt - obtainedAt) / 2) : expiresAt
}
