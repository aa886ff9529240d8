import { type Clock, reasonOf } from '@plat/core'
import type { Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import { type Credential, type Denial, deny, type Identity } from '../../call/index.ts'
import { type OwnerRules, personOf } from './owner.ts'
import { isRefusal, type Refusal } from './providers/client.ts'
import type { Provider } from './providers/provider.ts'
import { accountRecord } from './record.ts'
import { type Owner, ownerKey, type RemovedWhy, type Tokens } from './store/account.ts'
import type { Accounts, StoredAccount } from './store/accounts.ts'

/** Before it expires, a token that can be renewed is not used any more; in milliseconds. */
const MARGIN_MS = 60_000
/** After a refusal nobody asks again for this long, in milliseconds. */
const ASK_AGAIN_MS = 1_000
/** A token younger than this, in milliseconds, is not replaced because a server refuses it: the next one would be refused as well. */
const LEAST_AGE_MS = 10_000

/** Where a user connects an account, for agents of this tenant. */
export function connectURL(base: string, provider: string, tenant: string): string {
  return `${base}/${provider}${tenant === '' ? '' : `?tenant=${encodeURIComponent(tenant)}`}`
}

/** What the vault asks of a provider. */
export type VaultProvider = Pick<Provider, 'name' | 'title' | 'serves' | 'isFor' | 'renews' | 'renew' | 'revoke'>

export interface VaultParts {
  readonly accounts: Accounts
  readonly providers: ReadonlyMap<string, VaultProvider>
  readonly rules: OwnerRules
  /** Where a user connects an account of this provider. */
  readonly connectURL: (provider: string, tenant: string) => string
  readonly record: (tenant: string, record: Rec) => void
  readonly clock: Clock
  readonly log: Log
}

/** An account whose tokens are open. */
interface Held {
  readonly tokens: Tokens
  readonly credential: Credential
  /** Until then nobody looks for another token, in milliseconds since the epoch. */
  readonly freshUntil: number
  askAgainAt: number
}

/** What a call shows its server for the user that it acts for. */
export interface UserTokens {
  /** Why no call of this caller can be made at all; null: nothing is known against it. */
  missing(server: string, provider: string, identity: Identity): Denial | null
  /** A plain value when the token is in hand. */
  of(server: string, provider: string, identity: Identity): Credential | Denial | Promise<Credential | Denial>
  /** What to show instead of what the server has refused; a denial says what its user can do. */
  renewed(server: string, provider: string, identity: Identity, refused: Credential): Promise<Credential | Denial>
}

/** Users' own tokens (docs/spec/crds.md, `auth.perUser`): who may use which, and always a fresh one. */
export class Vault implements UserTokens {
  readonly #parts: VaultParts
  /** What is open goes with the account as it stands. */
  readonly #held = new WeakMap<StoredAccount, Held>()
  /** One call asks, however many wait; by owner. */
  readonly #asking = new Map<string, Promise<Credential | Denial>>()
  readonly #leaving = new Set<Promise<void>>()

  constructor(parts: VaultParts) {
    this.#parts = parts
  }

  missing(server: string, provider: string, identity: Identity): Denial | null {
    const found = this.#find(server, provider, identity)
    return 'kept' in found ? null : found
  }

  of(server: string, provider: string, identity: Identity): Credential | Denial | Promise<Credential | Denial> {
    const found = this.#find(server, provider, identity)
    if (!('kept' in found)) return found
    const held = this.#held.get(found.kept)
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
    if (!('kept' in found)) return found
    const held = this.#held.get(found.kept)
    // Somebody else has got the next one since.
    if (held === undefined || held.credential.headers !== refused.headers) return this.of(server, provider, identity)
    const { tokens } = held
    const isYoung = this.#parts.clock.now() < tokens.obtainedAt + LEAST_AGE_MS
    if (isYoung || !found.provider.renews(tokens)) {
      return this.#connect(
        found.provider,
        found.kept.account.tenant,
        `the server does not accept your ${found.provider.title} account`,
      )
    }
    return this.#once(found, true)
  }

  /** Keeps what a user has consented to. */
  async connect(owner: Owner, tokens: Tokens): Promise<void> {
    await this.#parts.accounts.connect(owner, tokens)
    this.#record(owner, 'connected', tokens.scopes)
  }

  account(owner: Owner): StoredAccount | null {
    return this.#parts.accounts.get(ownerKey(owner))
  }

  /** Forgets an account and has the provider revoke its tokens. False: there is none. */
  async remove(owner: Owner, why: RemovedWhy, by?: string): Promise<boolean> {
    for (;;) {
      const kept = this.account(owner)
      if (kept === null) return false
      // Where a call has just got the next token, that one goes as well.
      if (await this.#remove(kept, why, by)) return true
    }
  }

  /** The kill switch: removes every account of `<user>` in whatever realm, or of `<realm>#<user>`. */
  async removeUser(name: string): Promise<void> {
    const isMeant = ({ user, realm }: Owner) => user === name || `${realm}#${user}` === name
    await this.removeAll(this.#parts.accounts.list().filter(({ account }) => isMeant(account)))
  }

  /** Removes these accounts because their users are revoked. */
  async removeAll(kept: readonly StoredAccount[]): Promise<void> {
    const { log } = this.#parts
    const failed = (user: string) => (error: unknown) =>
      log.error({ user, error: reasonOf(error) }, 'an account could not be removed')
    await Promise.all(kept.map(({ account }) => this.remove(account, 'revoked').catch(failed(account.user))))
  }

  /** Waits for what providers are still told. */
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
    const kept = accounts.get(key)
    if (kept === null)
      return this.#connect(provider, identity.tenant, `your ${provider.title} account is not connected`)
    return { key, kept, provider }
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
    const asked = this.#fresh(found, isRefused).finally(() => this.#asking.delete(found.key))
    this.#asking.set(found.key, asked)
    return asked
  }

  /** `isRefused`: a server does not take the token that is held. */
  async #fresh({ key, kept, provider }: UsableAccount, isRefused: boolean): Promise<Credential | Denial> {
    const { accounts, clock } = this.#parts
    const held = this.#held.get(kept) ?? (await this.#open(kept, provider))
    if (held === null)
      return this.#connect(provider, kept.account.tenant, `your ${provider.title} account cannot be opened any more`)
    if (!isRefused && clock.now() < held.freshUntil) return held.credential
    const { tokens } = held
    const lasts = !isRefused && clock.now() < (tokens.expiresAt ?? Number.POSITIVE_INFINITY)
    if (!provider.renews(tokens)) {
      return lasts
        ? held.credential
        : this.#connect(provider, kept.account.tenant, `your ${provider.title} account has expired`)
    }
    const next = clock.now() < held.askAgainAt ? null : await provider.renew(tokens)
    if (next === null || isRefusal(next)) {
      if (next?.code === 'invalid_grant') return this.#ended(kept, provider)
      if (next !== null) this.#postpone(held, kept, next)
      return lasts ? held.credential : noToken
    }
    const renewed = await this.#keep(kept, provider, next)
    if (renewed !== null) return renewed.credential
    const other = accounts.get(key)
    if (other !== null) return this.#fresh({ key, kept: other, provider }, false)
    // Nobody took these away when the account went: they came too late.
    this.#revoke(provider, next)
    return this.#connect(provider, kept.account.tenant, `your ${provider.title} account is not connected`)
  }

  async #open(kept: StoredAccount, provider: VaultProvider): Promise<Held | null> {
    const { accounts, log } = this.#parts
    const tokens = await accounts.tokens(kept)
    if (tokens === null) {
      log.error(
        { account: kept.id, provider: provider.name },
        'a connected account cannot be opened: its seal is broken',
      )
      return null
    }
    // Sealed with a key that is being retired: it is sealed anew now that it is used.
    const current = accounts.isStale(kept) ? await this.#keep(kept, provider, tokens) : null
    return current ?? this.#hold(kept, provider, tokens)
  }

  /** Null: the account has changed meanwhile. What cannot be kept is used all the same: the provider has taken the one before back. */
  async #keep(kept: StoredAccount, provider: VaultProvider, tokens: Tokens): Promise<Held | null> {
    const { accounts, log } = this.#parts
    try {
      const after = await accounts.renew(kept, tokens)
      return after === null ? null : this.#hold(after, provider, tokens)
    } catch (error) {
      log.error({ account: kept.id, error: reasonOf(error) }, 'the tokens of an account could not be kept')
      return this.#hold(kept, provider, tokens)
    }
  }

  #hold(kept: StoredAccount, provider: VaultProvider, tokens: Tokens): Held {
    const held: Held = {
      tokens,
      credential: { headers: { authorization: `Bearer ${tokens.accessToken}` }, clientCert: null },
      freshUntil: freshUntil(tokens, provider.renews(tokens)),
      askAgainAt: 0,
    }
    this.#held.set(kept, held)
    return held
  }

  async #ended(kept: StoredAccount, provider: VaultProvider): Promise<Denial> {
    await this.#remove(kept, 'invalid_grant')
    return this.#connect(provider, kept.account.tenant, `${provider.title} has ended the connection of your account`)
  }

  #postpone(held: Held, { id }: StoredAccount, { why }: Refusal): void {
    const { clock, log } = this.#parts
    held.askAgainAt = clock.now() + ASK_AGAIN_MS
    log.warn({ account: id, problem: why }, 'no new token for a connected account')
  }

  /** False: it has changed meanwhile. */
  async #remove(kept: StoredAccount, why: RemovedWhy, by?: string): Promise<boolean> {
    const { accounts, providers } = this.#parts
    const tokens = await accounts.tokens(kept)
    if (!(await accounts.remove(kept, why))) return false
    this.#record(kept.account, why, kept.account.scopes, by)
    const provider = providers.get(kept.account.provider)
    if (tokens !== null && provider !== undefined && why !== 'invalid_grant') this.#revoke(provider, tokens)
    return true
  }

  #revoke(provider: VaultProvider, tokens: Tokens): void {
    const { log } = this.#parts
    const told = provider.revoke(tokens).then((fault) => {
      this.#leaving.delete(told)
      if (fault !== null) {
        log.warn({ provider: provider.name, problem: fault.why }, 'a provider did not revoke the tokens of an account')
      }
    })
    this.#leaving.add(told)
  }

  #record(owner: Owner, event: string, scopes: readonly string[], by?: string): void {
    this.#parts.record(owner.tenant, accountRecord(owner, event, scopes, by))
  }
}

/** An account that a call may use. */
interface UsableAccount {
  readonly key: string
  readonly kept: StoredAccount
  readonly provider: VaultProvider
}

function refused(why: string): Denial {
  return deny('upstream_credential', why)
}

const noToken = deny('upstream_credential', 'the provider gives no token now', { retryAfterMs: ASK_AGAIN_MS })

/** Of a token that lives shorter than twice the margin, half of its life is used. */
function freshUntil({ expiresAt, obtainedAt }: Tokens, renews: boolean): number {
  if (expiresAt === null) return Number.POSITIVE_INFINITY
  return renews ? expiresAt - Math.min(MARGIN_MS, (expiresAt - obtainedAt) / 2) : expiresAt
}
