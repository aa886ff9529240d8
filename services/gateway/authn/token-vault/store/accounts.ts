import { type PoolBound, SharedPool } from '@plat/core'
import { type Journal, type JournalEntry, JournalFollower } from '@plat/state'
import {
  type Account,
  accountId,
  type Owner,
  ownerKey,
  type RemovedWhy,
  type Sealed,
  type Tokens,
  type VaultEvent,
} from './account.ts'
import type { Envelope } from './envelope.ts'

/** Obsolete events after which the journal is compacted. */
const COMPACT_AFTER_EVENTS = 1_000

export interface AccountsParts {
  readonly journal: Journal<VaultEvent>
  /** Resolves when every change that another replica has made is known here; null: no other replica makes any. */
  readonly catchUp?: (() => Promise<void>) | null
  readonly envelope: Envelope
  /** Called when the journal fails and no caller waits for the result. */
  readonly onFault: (error: unknown) => void
  /** Called when a connection is refused. */
  readonly onRefused?: (bound: PoolBound) => void
}

/** Current state of an account. Each change creates a new object, which invalidates caches keyed by it. */
export interface StoredAccount {
  readonly id: string
  readonly account: Account
  readonly sealed: Sealed
  /** Number of events of its journal key. */
  readonly version: number
}

/** The bound of accounts is reached. */
export class VaultFullError extends Error {}

/**
 * The accounts of the journal, tokens sealed. Each change is an event first, and the accounts are what the events say. What was
 * removed is written over soon: no token stays on disk because nothing else happens.
 */
export class Accounts {
  readonly #parts: AccountsParts
  readonly #byOwner = new Map<string, StoredAccount>()
  readonly #byId = new Map<string, StoredAccount>()
  readonly #pool = new SharedPool({ name: 'connected_accounts' })
  readonly #followers: (() => void)[] = []
  readonly #follower: JournalFollower<VaultEvent>
  #isClosed = false
  #removed = false
  #compacting: Promise<void> | null = null

  constructor(parts: AccountsParts) {
    this.#parts = parts
    const { journal, onFault } = parts
    this.#follower = new JournalFollower({
      ...{ journal, onFault },
      replay: (entry) => this.#apply(entry),
      apply: (entry) => {
        this.#apply(entry)
        this.#notify()
      },
      replace: (entries) => this.#replace(entries),
    })
  }

  /** Reads the journal. Rejects if it cannot be read, or if no key opens some account. */
  async open(): Promise<void> {
    await this.#follower.read()
    const closed = this.list().filter(({ sealed }) => !this.#parts.envelope.opens(sealed))
    const [first] = closed
    if (first !== undefined) {
      const kid = first.sealed.kid
      throw new Error(
        `tokenVault.retiredKeyURIs: ${closed.length} accounts are sealed with a key that is not listed (kid ${kid}); ` +
          'list it, or move tokenVault.storePath away to begin anew',
      )
    }
    this.#follower.follow()
    this.#compactIfDue()
  }

  get(owner: string): StoredAccount | null {
    return this.#byOwner.get(owner) ?? null
  }

  byId(id: string): StoredAccount | null {
    return this.#byId.get(id) ?? null
  }

  get size(): number {
    return this.#byId.size
  }

  /** By descending id. */
  list(): StoredAccount[] {
    return [...this.#byId.values()].sort((a, b) => (a.id < b.id ? 1 : -1))
  }

  /** Calls `notify` after each change. */
  follow(notify: () => void): void {
    this.#followers.push(notify)
  }

  tokens({ account, sealed }: StoredAccount): Promise<Tokens | null> {
    return this.#parts.envelope.open(account, sealed)
  }

  /** Whether the account is sealed with a retired key. */
  isStale({ sealed }: StoredAccount): boolean {
    return !this.#parts.envelope.isCurrent(sealed)
  }

  /** Resolves when every change that another replica has made is known here. Rejects with StateUnreachableError. */
  async catchUp(): Promise<void> {
    await this.#parts.catchUp?.()
  }

  /** Stores the tokens of a consent and replaces earlier ones. Durable when it resolves. */
  async connect(owner: Owner, tokens: Tokens): Promise<void> {
    // A user may connect one account per tenant.
    const bound = this.get(ownerKey(owner)) === null ? this.#pool.boundFor(userOf(owner)) : null
    if (bound !== null) {
      this.#parts.onRefused?.(bound)
      throw new VaultFullError(
        bound === 'share' ? 'the user has connected too many accounts' : 'too many accounts are connected',
      )
    }
    await this.#keep(owner, tokens, tokens.obtainedAt)
  }

  /** Stores renewed tokens. Returns null without a change if the account has changed meanwhile. */
  async renew(stored: StoredAccount, tokens: Tokens): Promise<StoredAccount | null> {
    const { account } = stored
    return this.#keep(account, tokens, account.connectedAt, stored)
  }

  /** Returns false if the account has changed meanwhile. */
  async remove(stored: StoredAccount, why: RemovedWhy): Promise<boolean> {
    const { id, version } = stored
    if (this.#byId.get(id) !== stored) return false
    const removed = await this.#parts.journal.append(id, [{ t: 'removed', why }], version)
    this.#compactIfDue()
    return removed !== 'conflict'
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#follower.close()
    await this.#compacting
  }

  async #keep(
    owner: Owner,
    tokens: Tokens,
    connectedAt: number,
    before?: StoredAccount,
  ): Promise<StoredAccount | null> {
    const { tenant, realm, user, provider } = owner
    const { scopes, expiresAt } = tokens
    const sealed = await this.#parts.envelope.seal(owner, tokens)
    const key = ownerKey(owner)
    // The version alone is ambiguous: it restarts at compaction. Another replica may have removed the account and connected it again.
    if (before !== undefined) await this.catchUp()
    if (before !== undefined && this.get(key) !== before) return null
    const account = { tenant, realm, user, provider, scopes, expiresAt, connectedAt }
    const id = accountId(owner)
    const version = await this.#parts.journal.append(id, [{ t: 'kept', account, sealed }], before?.version)
    this.#compactIfDue()
    return version === 'conflict' ? null : this.get(key)
  }

  #apply({ key: id, version, event }: JournalEntry<VaultEvent>): void {
    const before = this.#byId.get(id)
    if (event.t === 'removed') {
      this.#removed = true
      this.#byId.delete(id)
      if (before === undefined) return
      this.#byOwner.delete(ownerKey(before.account))
      this.#pool.release(userOf(before.account))
      return
    }
    if (before === undefined) this.#pool.add(userOf(event.account))
    const stored = { id, account: event.account, sealed: event.sealed, version }
    this.#byId.set(id, stored)
    this.#byOwner.set(ownerKey(event.account), stored)
  }

  /** The journal was read anew: other replicas made changes that were missed here. */
  #replace(entries: readonly JournalEntry<VaultEvent>[]): void {
    for (const { account } of this.#byId.values()) this.#pool.release(userOf(account))
    this.#byId.clear()
    this.#byOwner.clear()
    for (const entry of entries) this.#apply(entry)
    this.#notify()
  }

  #notify(): void {
    for (const notify of this.#followers) notify()
  }

  #compactIfDue(): void {
    if (this.#isDue() && this.#compacting === null) this.#compacting = this.#compact()
  }

  #isDue(): boolean {
    const needless = this.#follower.events - this.#byId.size
    return this.#removed || (needless >= COMPACT_AFTER_EVENTS && needless > this.#byId.size)
  }

  async #compact(): Promise<void> {
    try {
      while (this.#isDue() && !this.#isClosed) {
        // Lets a caller that removes many accounts finish before compaction.
        await Promise.resolve()
        this.#removed = false
        await this.#follower.compact(() =>
          this.list().map(({ id: key, account, sealed, version }) => ({
            key,
            version,
            event: { t: 'kept', account, sealed } as const,
          })),
        )
      }
    } catch (error) {
      this.#parts.onFault(error)
    } finally {
      this.#compacting = null
    }
  }
}

/** Whose share an account uses. */
function userOf({ realm, user }: Pick<Owner, 'realm' | 'user'>): string {
  return JSON.stringify([realm, user])
}
