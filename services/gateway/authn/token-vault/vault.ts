import { type Clock, reasonOf } from '@plat/core'
import { KeyServiceError } from '@plat/keys'
import type { Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import { type Lease, type Leases, StateUnreachableError } from '@plat/state'
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
/** How long a renewal may keep others away, in milliseconds: longer than all requests of one renewal together, each of which has a time limit. */
const LEASE_MS = 90_000
/** How often a call looks whether another replica has renewed the token that it waits for, and for how long, in milliseconds. */
const LOOK_EVERY_MS = 250
const WAIT_MS = 10_000
/** Pause between attempts to store tokens, in milliseconds. */
const STORE_AGAIN_MS = 500

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
  /** Held while the tokens of an account are renewed: a refresh token that two replicas use ends the account at many providers. */
  readonly leases: Leases
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
  #isClosed = false

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
    this.#isClosed = true
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
    const found = { key, stored, provider }
    const renewed = clock.now() < held.askAgainAt ? noToken : await this.#renewAlone(found, held, lasts)
    if (renewed !== null) return renewed === noToken && lasts ? held.credential : renewed
    const other = accounts.get(key)
    if (other !== null) return this.#fresh({ key, stored: other, provider }, false)
    return this.#connect(provider, stored.account.tenant, `your ${provider.title} account is not connected`)
  }

  /** Renews the tokens of an account while no other replica does. Returns null if the account has changed meanwhile. */
  async #renewAlone(found: UsableAccount, held: Held, lasts: boolean): Promise<Credential | Denial | null> {
    const { leases, clock } = this.#parts
    const endsAt = clock.monotonic() + WAIT_MS
    for (;;) {
      let lease: Lease | null
      try {
        lease = await leases.acquire(`account/${found.stored.id}`, LEASE_MS)
        if (lease !== null) return await this.#renew(found, held, lease)
      } catch (error) {
        if (!(error instanceof StateUnreachableError)) throw error
        return lasts ? held.credential : notRenewed
      }
      // Another replica renews the token. One that lasts is used meanwhile.
      if (lasts) held.askAgainAt = clock.now() + ASK_AGAIN_MS
      if (lasts || clock.monotonic() >= endsAt) return noToken
      await new Promise<void>((resolve) => clock.after(LOOK_EVERY_MS, resolve))
      if (this.#parts.accounts.get(found.key) !== found.stored) return null
    }
  }

  /** Ends the lease, also when it rejects. Returns null if the account has changed meanwhile. */
  async #renew(
    { key, stored, provider }: UsableAccount,
    held: Held,
    lease: Lease,
  ): Promise<Credential | Denial | null> {
    const { accounts } = this.#parts
    let isStored = true
    try {
      await accounts.catchUp()
      if (accounts.get(key) !== stored) return null
      const next = await provider.renew(held.tokens)
      if (isRefusal(next)) {
        if (next.code === 'invalid_grant') return await this.#ended(stored, provider)
        this.#postpone(held, stored, next)
        return noToken
      }
      const renewed = await this.#keep(stored, provider, next)
      isStored = renewed === null || renewed.isStored
      if (renewed !== null) return renewed.held.credential
      // The account was removed during the renewal, so the new tokens must be revoked here.
      if (accounts.get(key) === null) this.#revoke(provider, next)
      return null
    } finally {
      if (isStored) await lease.release()
      else void this.#storeLater(stored, provider, lease)
    }
  }

  /** Stores tokens as soon as the journal can be written: the provider has invalidated the ones that are stored. */
  async #storeLater(stored: StoredAccount, provider: VaultProvider, lease: Lease): Promise<void> {
    const { accounts, clock } = this.#parts
    let tokens = this.#held.get(stored)?.tokens
    while (tokens !== undefined && !this.#isClosed) {
      await new Promise<void>((resolve) => clock.after(STORE_AGAIN_MS, resolve))
      tokens = this.#held.get(stored)?.tokens
      if (tokens === undefined) break
      const after = await accounts.renew(stored, tokens).catch(() => 'failed' as const)
      if (after === 'failed') continue
      if (after !== null) this.#hold(after, provider, tokens)
      break
    }
    await lease.release()
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
    return current?.held ?? this.#hold(stored, provider, tokens)
  }

  /**
   * Returns null if the account has changed meanwhile. Tokens that cannot be stored are still used: the provider has invalidated their
   * predecessors.
   */
  async #keep(stored: StoredAccount, provider: VaultProvider, tokens: Tokens): Promise<Kept | null> {
    const { accounts, log } = this.#parts
    try {
      const after = await accounts.renew(stored, tokens)
      return after === null ? null : { held: this.#hold(after, provider, tokens), isStored: true }
    } catch (error) {
      log.error({ account: stored.id, error: reasonOf(error) }, 'the tokens of an account could not be stored')
      return { held: this.#hold(stored, provider, tokens), isStored: false }
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

/** `isStored`: a restart, and other replicas, find these tokens. */
interface Kept {
  readonly held: Held
  readonly isStored: boolean
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

const notRenewed = deny(
  'state_unavailable',
  'the token of the account cannot be renewed now: the state database is away',
)
const noToken = deny('upstream_credential', 'the provider issues no token now', { retryAfterMs: ASK_AGAIN_MS })

/** Returns the end of use. For tokens that live less than twice the margin it is half of their lifetime. */
function freshUntil({ expiresAt, obtainedAt }: Tokens, renews: boolean): number {
  if (expiresAt === null) return Number.POSITIVE_INFINITY
  return renews ? expiresAt - Math.min(MARGIN_MS, (expiresAt - obtainedAt) / 2) : expiresAt
}
