import { Backoff, type Clock, type Ids, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { GatewayMetrics } from '../../metrics.ts'
import { type Owner, ownerKey } from './store/account.ts'
import type { Accounts } from './store/accounts.ts'
import type { Vault } from './vault.ts'

/** First pause before removals are tried again, in milliseconds. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000

export interface RevokedUsers {
  revoked(user: string, issuer: string): boolean
  /** Calls `notify` with `<user>` or `<issuer>#<user>` for each newly revoked user. */
  follow(notify: (name: string) => void): void
}

export type RemovalMetrics = Pick<GatewayMetrics, 'gauge'>

interface OpenOptions extends Omit<RevokedAccountsOptions, 'isRevoked'> {
  readonly revokedUsers: RevokedUsers
  readonly metrics: RemovalMetrics
  /** Revoked users keep their accounts. */
  readonly keeps: boolean
}

export interface RevokedAccountsOptions {
  readonly accounts: Pick<Accounts, 'list'>
  readonly vault: Pick<Vault, 'remove'>
  /** Returns whether a user is revoked now: a revocation that is lifted while a removal waits keeps the account. */
  readonly isRevoked: (owner: Owner) => boolean
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly log: Log
}

/**
 * Removes the accounts of revoked users. A removal decrypts the tokens, which are revoked at their provider: one that fails because the key
 * service, the state or the disk is unavailable stays pending and is tried again with backoff. There is at most one for each account.
 */
export class RevokedAccounts {
  readonly #options: RevokedAccountsOptions
  readonly #backoff: Backoff
  readonly #pending = new Map<string, Owner>()
  #failures = 0
  #round: Promise<void> | null = null
  #cancel: () => void = () => {}
  #isClosed = false

  constructor(options: RevokedAccountsOptions) {
    this.#options = options
    this.#backoff = new Backoff({ firstMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS, ids: options.ids })
  }

  /** Removes accounts of users that are already revoked, then follows new revocations. Resolves after the first attempt. */
  static async open({ revokedUsers, metrics, keeps, ...options }: OpenOptions): Promise<RevokedAccounts> {
    const isRevoked = ({ user, realm }: Owner) => revokedUsers.revoked(user, realm)
    const removals = new RevokedAccounts({ ...options, isRevoked })
    metrics.gauge('plat_gateway_token_vault_pending_removals').from(() => removals.pending)
    if (keeps) return removals
    revokedUsers.follow((name) => void removals.removeUser(name))
    await removals.remove(options.accounts.list().flatMap(({ account }) => (isRevoked(account) ? [account] : [])))
    return removals
  }

  /** Number of accounts that wait for their removal. */
  get pending(): number {
    return this.#pending.size
  }

  /** Removes every account of a revoked user, `<user>` in any realm or `<realm>#<user>`. Resolves after the first attempt. */
  removeUser(name: string): Promise<void> {
    const isMeant = ({ user, realm }: Owner) => user === name || `${realm}#${user}` === name
    return this.remove(this.#options.accounts.list().flatMap(({ account }) => (isMeant(account) ? [account] : [])))
  }

  /** Removes the accounts of these owners. Resolves after the first attempt. */
  async remove(owners: readonly Owner[]): Promise<void> {
    for (const owner of owners) this.#pending.set(ownerKey(owner), owner)
    while (this.#round !== null) await this.#round
    if (owners.some((owner) => this.#pending.has(ownerKey(owner)))) await this.#start(owners)
  }

  /** Ends the retries. Accounts that are still pending are removed at the next start. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancel()
    await this.#round
  }

  #start(first: readonly Owner[] = []): Promise<void> {
    this.#cancel()
    this.#round ??= this.#run(first).finally(() => {
      this.#round = null
    })
    return this.#round
  }

  /** Attempts removals, `first` before the others, until one fails: while a key service is away, each round sends it one request. */
  async #run(first: readonly Owner[]): Promise<void> {
    for (const owner of [...first, ...this.#pending.values()]) {
      const key = ownerKey(owner)
      if (this.#isClosed || !this.#pending.has(key)) continue
      try {
        const isWanted = () => this.#options.isRevoked(owner)
        if (isWanted()) await this.#options.vault.remove(owner, 'revoked', { isWanted })
        this.#pending.delete(key)
      } catch (error) {
        // Behind the others, so that one account whose removal always fails does not keep them.
        this.#pending.delete(key)
        this.#pending.set(key, owner)
        return this.#postpone(owner, error)
      }
    }
    if (this.#pending.size === 0) this.#recovered()
  }

  #recovered(): void {
    if (this.#failures === 0) return
    this.#failures = 0
    this.#options.log.info({}, 'the accounts of revoked users are removed')
  }

  #postpone({ user }: Owner, error: unknown): void {
    const { log, clock } = this.#options
    if (this.#failures === 0)
      log.error(
        { user, pending: this.#pending.size, error: reasonOf(error) },
        'an account of a revoked user could not be removed, will retry',
      )
    const pauseMs = this.#backoff.pauseMs(this.#failures)
    this.#failures++
    if (!this.#isClosed) this.#cancel = clock.after(pauseMs, () => void this.#start())
  }
}
