import { type Clock, reasonOf } from '@plat/core'
import type { Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Journal } from '@plat/state'
import { type Denial, deny, type Identity } from '../../call/index.ts'
import { ListFile } from './file.ts'
import type { DecodedFile, Revocation, RevocationEvent } from './format.ts'
import { type AbsentSession, RevocationList, type RevocationSource } from './list.ts'
import type { RevocationMetrics } from './metrics.ts'
import { Copies } from './mirrored.ts'
import { fileRecord, liftRecord, revokeRecord } from './record.ts'
import { type Added, StoredRevocations } from './stored-revocations.ts'

/** Interval of the sweep of expired entries, in milliseconds. */
const SWEEP_EVERY_MS = 1_000
/** `retryAfterMs` of calls denied because there is no trusted list. */
const RETRY_MS = 1_000

const AWAY = 'the state database could not be read for too long'

const NO_LIST = deny('revocations_unavailable', 'the list of revocations cannot be read, so every call is denied', {
  retryAfterMs: RETRY_MS,
})

export interface ListedRevocation extends Revocation {
  readonly source: RevocationSource
}

export interface RevocationsParts {
  readonly journal: Journal<RevocationEvent>
  /** Null: no `revocationsFile`. */
  readonly file: { readonly path: string; readonly everyMs: number } | null
  /** docs/spec/gateway.md, `revocationMirror.namespace`. */
  readonly mirrorNamespace: string
  readonly clock: Clock
  readonly log: Log
  /** The live calls. */
  readonly live: { cut(judge: (who: Identity) => Denial | null): number }
  /** Clears the cache of verified tokens, so that each is verified again. */
  readonly forgetTokens?: (() => void) | undefined
  readonly record: (record: Rec) => void
  readonly metrics: RevocationMetrics
}

/** Called after a break-glass entry was made or lifted, on any replica. */
export type RevocationFollower = (change: 'created' | 'lifted', revocation: Revocation) => void

/** Revocations in force: the list of the file and the break-glass entries. A change of either ends matching live calls at once. */
export class Revocations {
  readonly #parts: RevocationsParts
  readonly #stored: StoredRevocations
  readonly #file: ListFile | null
  /** The last valid list of the file; null before the first. */
  #listed: RevocationList | null = null
  #reportedStale = false
  readonly #userFollowers: ((user: string) => void)[] = []
  readonly #followers: RevocationFollower[] = []
  readonly #cutFollowers: (() => void)[] = []
  readonly #copies: Copies
  #stopSweep: () => void = () => {}

  constructor(parts: RevocationsParts) {
    this.#parts = parts
    const { journal, file, mirrorNamespace, clock, log } = parts
    this.#copies = new Copies(mirrorNamespace)
    this.#stored = new StoredRevocations({
      journal,
      clock,
      onRevoked: (revocation) => this.#revoked(revocation),
      onLifted: (revocation) => this.#lifted(revocation),
      onFault: (error) => log.error({ error: reasonOf(error) }, 'the journal of revocations failed'),
    })
    this.#file =
      file === null
        ? null
        : new ListFile({
            ...file,
            clock,
            onList: (list) => this.#publish(list),
            onLost: (problems) => this.#lost(problems),
          })
  }

  /** Loads both lists before the gateway serves. Rejects if the journal cannot be read. */
  async open(): Promise<void> {
    const { clock, metrics } = this.#parts
    metrics.listOk(() => this.isKnown)
    await this.#stored.open()
    await this.#file?.check()
    this.#count()
    this.#stopSweep = clock.every(SWEEP_EVERY_MS, () => this.#sweep())
  }

  /** Returns the denial of a revoked caller, or null. Called before each call and during it. */
  judge(who: Identity): Denial | null {
    if (!this.isKnown) return NO_LIST
    const { clock } = this.#parts
    return this.#listed?.judge(who, clock) ?? this.#stored.list.judge(who, clock)
  }

  /** False if revocations of the file or of other replicas may be missing here. */
  get isKnown(): boolean {
    return this.#file?.ok !== false && this.#parts.journal.health !== 'unreachable'
  }

  /** Whether this user of an issuer is revoked by name. Suspensions do not count. */
  hasRevoked(user: string, issuer: string): boolean {
    const { clock } = this.#parts
    return this.#listed?.hasRevoked(user, issuer, clock) === true || this.#stored.list.hasRevoked(user, issuer, clock)
  }

  /** Whether a session is revoked as a whole, see `RevocationList.hasEnded`. False while that is not known. */
  hasEnded(session: AbsentSession): boolean {
    if (!this.isKnown) return false
    const { clock } = this.#parts
    return this.#listed?.hasEnded(session, clock) === true || this.#stored.list.hasEnded(session, clock)
  }

  /** Whether a session is revoked or suspended as a whole, see `RevocationList.hasStopped`. True while that is not known. */
  hasStopped(session: AbsentSession): boolean {
    if (!this.isKnown) return true
    const { clock } = this.#parts
    return this.#listed?.hasStopped(session, clock) === true || this.#stored.list.hasStopped(session, clock)
  }

  /** Calls `notify` for each user that a new entry revokes by name. */
  followUsers(notify: (user: string) => void): void {
    this.#userFollowers.push(notify)
  }

  /** Break-glass entries in force. */
  breakglass(): readonly Revocation[] {
    return this.#stored.list.inForce(this.#parts.clock.now())
  }

  /** Calls `notify` whenever a break-glass entry was made or lifted. */
  follow(notify: RevocationFollower): void {
    this.#followers.push(notify)
  }

  /** Calls `notify` whenever live calls of revoked callers were ended, for work that continues without a call. */
  followCuts(notify: () => void): void {
    this.#cutFollowers.push(notify)
  }

  /** `judge` with metrics. */
  admit(who: Identity): Denial | null {
    const denial = this.judge(who)
    if (denial !== null && denial.revoked !== null) this.#parts.metrics.revoked(denial.revoked)
    return denial
  }

  /** Adds a break-glass entry, see `StoredRevocations.add`. */
  async revoke(revocation: Revocation, by: string): Promise<Added> {
    const added = await this.#stored.add(revocation)
    this.#parts.record(revokeRecord(revocation, by, added))
    return added
  }

  /** Lifts a break-glass entry. `listed`: it is in the file and can only be removed there. Rejects if the journal fails. */
  async lift(id: string, by: string): Promise<'lifted' | 'listed' | 'unknown'> {
    const revocation = this.#stored.list.get(id)
    if (revocation === null || !(await this.#stored.lift(id))) return this.#listed?.get(id) ? 'listed' : 'unknown'
    this.#parts.record(liftRecord(revocation, by))
    return 'lifted'
  }

  /** Entries in force, by descending id. An entry in both lists is returned once, as break-glass. */
  list(): readonly ListedRevocation[] {
    const now = this.#parts.clock.now()
    const byId = new Map<string, ListedRevocation>()
    for (const one of this.#listed?.inForce(now) ?? []) byId.set(one.id, { ...one, source: 'file' })
    for (const one of this.#stored.list.inForce(now)) byId.set(one.id, { ...one, source: 'breakglass' })
    return [...byId.values()].sort((a, b) => (a.id < b.id ? 1 : -1))
  }

  close(): void {
    this.#stopSweep()
    this.#file?.stop()
    this.#stored.close()
  }

  #revoked(revocation: Revocation): number {
    this.#listed?.remove(this.#copies.idOf(revocation))
    const cut = this.#cut()
    this.#tellUser(revocation)
    this.#propagated(revocation)
    this.#count()
    for (const notify of this.#followers) notify('created', revocation)
    return cut
  }

  /** The mirror must not revoke its targets until the cluster has removed it. */
  #lifted(revocation: Revocation): void {
    this.#copies.lifted(revocation, this.#parts.clock.now())
    this.#count()
    for (const notify of this.#followers) notify('lifted', revocation)
  }

  #tellUser({ mode, target: { user } }: Revocation): void {
    if (user !== undefined && mode === 'revoke') for (const notify of this.#userFollowers) notify(user)
  }

  #publish({ entries, sha256 }: DecodedFile): void {
    const { log, record, file, clock } = this.#parts
    const before = this.#listed
    const list = new RevocationList()
    for (const entry of entries) if (!this.#copies.has(entry.id, this.#stored.list)) list.add(entry)
    this.#listed = list
    const cut = this.#cut()
    // Entries of the first list are not counted: they were in force before this process.
    const fresh = before === null ? [] : list.inForce(clock.now()).filter(({ id }) => before.get(id) === null)
    for (const entry of fresh) {
      this.#tellUser(entry)
      this.#propagated(entry)
    }
    this.#count()
    record(fileRecord({ action: 'loaded', entries: entries.length, sha256, cut }))
    log.info({ path: file?.path, revocations: entries.length, sha256, cut }, 'revocations loaded')
  }

  #lost(problems: readonly string[]): void {
    const { log, record, file } = this.#parts
    const cut = this.#cut()
    record(fileRecord({ action: 'unavailable', reason: problems[0] ?? '', cut }))
    log.error({ path: file?.path, problems, cut }, 'the list of revocations is not usable: every call is denied')
  }

  #cut(): number {
    this.#parts.forgetTokens?.()
    const cut = this.#parts.live.cut((who) => this.admit(who))
    for (const notify of this.#cutFollowers) notify()
    return cut
  }

  #propagated({ createdAt }: Revocation): void {
    const { clock, metrics } = this.#parts
    metrics.propagated(Math.max(0, clock.now() - Date.parse(createdAt)) / 1000)
  }

  #sweep(): void {
    const now = this.#parts.clock.now()
    this.#listed?.forgetExpired(now)
    this.#copies.forgetOld(now)
    this.#stored.sweep()
    this.#count()
    const isAway = this.#parts.journal.health === 'unreachable'
    const stale = isAway || (this.#file?.stale ?? false)
    if (stale && !this.#reportedStale) this.#lost([isAway ? AWAY : 'could not be checked for too long'])
    this.#reportedStale = stale
  }

  #count(): void {
    const { metrics } = this.#parts
    metrics.active('file', this.#listed?.size ?? 0)
    metrics.active('breakglass', this.#stored.list.size)
  }
}
