import { type Clock, reasonOf } from '@plat/core'
import type { Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Journal } from '@plat/state'
import { type Denial, deny, type Identity } from '../../call/index.ts'
import { ListFile } from './file.ts'
import type { DecodedFile, Revocation, RevocationEvent } from './format.ts'
import { RevocationList, type RevocationSource } from './list.ts'
import type { RevocationMetrics } from './metrics.ts'
import { Copies } from './mirrored.ts'
import { fileRecord, liftRecord, revokeRecord } from './record.ts'
import { type Added, StoredRevocations } from './stored-revocations.ts'

/** How often expired entries are forgotten and counted out, in milliseconds. */
const SWEEP_EVERY_MS = 1_000
/** When a caller that was denied for want of a list should come again, in milliseconds. */
const RETRY_MS = 1_000

const AWAY = 'the state database was not read for too long'

const NO_LIST = deny('revocations_unavailable', 'the list of revocations cannot be read, so every call is denied', {
  retryAfterMs: RETRY_MS,
})

export interface ListedRevocation extends Revocation {
  readonly source: RevocationSource
}

export interface RevocationsParts {
  readonly journal: Journal<RevocationEvent>
  /** Null: there is no `revocationsFile`. */
  readonly file: { readonly path: string; readonly everyMs: number } | null
  /** docs/spec/gateway.md, `revocationMirror.namespace`. */
  readonly mirrorNamespace: string
  readonly clock: Clock
  readonly log: Log
  /** Reaches the calls under way. */
  readonly live: { cut(judge: (who: Identity) => Denial | null): number }
  /** Empties the memory of verified tokens: after a revocation each is verified again. */
  readonly forgetTokens?: (() => void) | undefined
  readonly record: (record: Rec) => void
  readonly metrics: RevocationMetrics
}

/**
 * The kill switch: who may not call any more. Two lists are in force side by side, that of the file, which other people
 * keep, and break-glass entries, which are made here. Whatever changes one of them reaches the calls under way at once.
 */
export class Revocations {
  readonly #parts: RevocationsParts
  readonly #kept: StoredRevocations
  readonly #file: ListFile | null
  /** What the file said last; null before its first good content. */
  #listed: RevocationList | null = null
  #toldStale = false
  readonly #userFollowers: ((user: string) => void)[] = []
  readonly #followers: (() => void)[] = []
  readonly #copies: Copies
  #stopSweep: () => void = () => {}

  constructor(parts: RevocationsParts) {
    this.#parts = parts
    const { journal, file, mirrorNamespace, clock, log } = parts
    this.#copies = new Copies(mirrorNamespace)
    this.#kept = new StoredRevocations({
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

  /** Reads both lists; comes before the gateway serves. Rejects when the journal cannot be read. */
  async open(): Promise<void> {
    const { clock, metrics } = this.#parts
    metrics.listOk(() => this.isKnown)
    await this.#kept.open()
    await this.#file?.check()
    this.#count()
    this.#stopSweep = clock.every(SWEEP_EVERY_MS, () => this.#sweep())
  }

  /** May this caller go on? Asked before each call and while it lasts. */
  judge(who: Identity): Denial | null {
    if (!this.isKnown) return NO_LIST
    const { clock } = this.#parts
    return this.#listed?.judge(who, clock) ?? this.#kept.list.judge(who, clock)
  }

  /** False: what other people or other replicas revoked may not be known here. */
  get isKnown(): boolean {
    return this.#file?.ok !== false && this.#parts.journal.health !== 'unreachable'
  }

  /** Whether this user of an issuer is revoked by name; a suspension does not count. */
  hasRevoked(user: string, issuer: string): boolean {
    const { clock } = this.#parts
    return this.#listed?.hasRevoked(user, issuer, clock) === true || this.#kept.list.hasRevoked(user, issuer, clock)
  }

  /** Is told of every user whom an entry revokes by name from now on. */
  followUsers(tell: (user: string) => void): void {
    this.#userFollowers.push(tell)
  }

  /** Break-glass entries in force. */
  breakglass(): readonly Revocation[] {
    return this.#kept.list.inForce(this.#parts.clock.now())
  }

  /** Is told whenever a break-glass entry was made or lifted. */
  follow(tell: () => void): void {
    this.#followers.push(tell)
  }

  /** `judge`, counted where a revocation is the reason. */
  ask(who: Identity): Denial | null {
    const denial = this.judge(who)
    if (denial !== null && denial.revoked !== null) this.#parts.metrics.revoked(denial.revoked)
    return denial
  }

  /** Makes a break-glass entry, as `KeptRevocations.add` does. */
  async revoke(revocation: Revocation, by: string): Promise<Added> {
    const added = await this.#kept.add(revocation)
    this.#parts.record(revokeRecord(revocation, by, added))
    return added
  }

  /** Ends a break-glass entry. `listed`: it stands in the file, where alone it can be lifted. Rejects with the journal. */
  async lift(id: string, by: string): Promise<'lifted' | 'listed' | 'unknown'> {
    const revocation = this.#kept.list.get(id)
    if (revocation === null || !(await this.#kept.lift(id))) return this.#listed?.get(id) ? 'listed' : 'unknown'
    this.#parts.record(liftRecord(revocation, by))
    return 'lifted'
  }

  /** Entries in force, in the descending order of their ids. One that is in both lists is told once, as break-glass. */
  list(): readonly ListedRevocation[] {
    const now = this.#parts.clock.now()
    const byId = new Map<string, ListedRevocation>()
    for (const one of this.#listed?.inForce(now) ?? []) byId.set(one.id, { ...one, source: 'file' })
    for (const one of this.#kept.list.inForce(now)) byId.set(one.id, { ...one, source: 'breakglass' })
    return [...byId.values()].sort((a, b) => (a.id < b.id ? 1 : -1))
  }

  close(): void {
    this.#stopSweep()
    this.#file?.stop()
    this.#kept.close()
  }

  #revoked(revocation: Revocation): number {
    this.#listed?.remove(this.#copies.idOf(revocation))
    const cut = this.#cut()
    this.#tellUser(revocation)
    this.#propagated(revocation)
    this.#count()
    for (const tell of this.#followers) tell()
    return cut
  }

  /** Its copy must not hold on to whom it named until the cluster has heard of it. */
  #lifted(revocation: Revocation): void {
    this.#copies.lifted(revocation, this.#parts.clock.now())
    this.#count()
    for (const tell of this.#followers) tell()
  }

  #tellUser({ mode, target: { user } }: Revocation): void {
    if (user !== undefined && mode === 'revoke') for (const tell of this.#userFollowers) tell(user)
  }

  #publish({ entries, sha256 }: DecodedFile): void {
    const { log, record, file, clock } = this.#parts
    const before = this.#listed
    const list = new RevocationList()
    for (const entry of entries) if (!this.#copies.has(entry.id, this.#kept.list)) list.add(entry)
    this.#listed = list
    const cut = this.#cut()
    // What stood there before this process looked for the first time did not have to propagate.
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
    log.error({ path: file?.path, problems, cut }, 'the list of revocations cannot be used: every call is denied')
  }

  #cut(): number {
    this.#parts.forgetTokens?.()
    return this.#parts.live.cut((who) => this.ask(who))
  }

  #propagated({ createdAt }: Revocation): void {
    const { clock, metrics } = this.#parts
    metrics.propagated(Math.max(0, clock.now() - Date.parse(createdAt)) / 1000)
  }

  #sweep(): void {
    const now = this.#parts.clock.now()
    this.#listed?.forgetExpired(now)
    this.#copies.forgetOld(now)
    this.#kept.sweep()
    this.#count()
    const isAway = this.#parts.journal.health === 'unreachable'
    const stale = isAway || (this.#file?.stale ?? false)
    if (stale && !this.#toldStale) this.#lost([isAway ? AWAY : 'could not be looked at for too long'])
    this.#toldStale = stale
  }

  #count(): void {
    const { metrics } = this.#parts
    metrics.active('file', this.#listed?.size ?? 0)
    metrics.active('breakglass', this.#kept.list.size)
  }
}
