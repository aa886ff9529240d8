import { type Clock, type PoolObserver, SharedPool } from '@plat/core'
import { CodedRefusalError } from '@plat/http/endpoints'
import { type JournalEntry, JournalFollower, type JournalSnapshot, type OpenJournal } from '@plat/state'
import { type EndReason, type Release, sessionKey, stateOf } from './release.ts'

/** How long an ended release is kept, in milliseconds. */
const REMEMBER_MS = 60 * 60 * 1000
/** The journal is compacted when it has this many more lines than releases. */
const COMPACT_AFTER_LINES = 10_000

export interface ReleasesOptions {
  readonly journal: OpenJournal<Release>
  readonly clock: Clock
  readonly onFault: (error: unknown) => void
  readonly observer?: PoolObserver | undefined
}

interface Entry {
  readonly release: Release
  /** Number of events of the session in the journal. */
  readonly version: number
}

/** The last release of each session. A change is durable before it takes effect. */
export class Releases {
  readonly #options: ReleasesOptions
  readonly #sessions = new Map<string, Entry>()
  /** Session by release. */
  readonly #ids = new Map<string, string>()
  /** Sessions with a request in progress. */
  readonly #busy = new Set<string>()
  readonly #counts = { pending: 0, active: 0, ended: 0 }
  /** Releases that have not ended, by namespace. */
  readonly #open = new SharedPool({ name: 'releases' })
  readonly #follower: JournalFollower<Release>

  private constructor(options: ReleasesOptions) {
    this.#options = options
    options.observer?.watch(() => this.#open.used)
    const { journal, onFault } = options
    this.#follower = new JournalFollower({ journal, onFault, apply: (entry) => this.#apply(entry) })
  }

  /** Reads the journal, then answers. */
  static async open(options: ReleasesOptions): Promise<Releases> {
    const releases = new Releases(options)
    await releases.#follower.open()
    return releases
  }

  get pending(): number {
    return this.#counts.pending
  }

  get active(): number {
    return this.#counts.active
  }

  /** Whether changes can be stored. */
  get healthy(): boolean {
    return this.#options.journal.health === 'ok'
  }

  /** Returns the release with this id; null when it is unknown or ended long ago. */
  get(id: string): Release | null {
    const key = this.#ids.get(id)
    return key === undefined ? null : (this.#sessions.get(key)?.release ?? null)
  }

  ofSession(name: Release['name']): Release | null {
    return this.#sessions.get(sessionKey(name))?.release ?? null
  }

  /** Runs `work` with the session locked. Throws `busy` while it is locked. */
  async alone<T>(name: Release['name'], work: () => Promise<T>): Promise<T> {
    const key = sessionKey(name)
    if (this.#busy.has(key)) {
      throw new CodedRefusalError(409, 'busy', 'another request works on this session: try again', {
        'retry-after': '1',
      })
    }
    this.#busy.add(key)
    try {
      return await work()
    } finally {
      this.#busy.delete(key)
    }
  }

  isBusy(name: Release['name']): boolean {
    return this.#busy.has(sessionKey(name))
  }

  /** Durable when it resolves. Caller must hold the session's lock. Throws 503 when the journal cannot be written. */
  async write(release: Release): Promise<void> {
    const key = sessionKey(release.name)
    const before = this.#sessions.get(key)
    const isNew = before === undefined || before.release.ended !== null
    const bound = isNew ? this.#open.boundFor(release.name.namespace) : null
    if (bound !== null) {
      this.#options.observer?.refused(bound)
      const whose = bound === 'share' ? `of namespace ${release.name.namespace}` : 'in all'
      throw new CodedRefusalError(429, 'too_many_releases', `there are too many releases ${whose}`, {
        'retry-after': '10',
      })
    }
    try {
      const version = await this.#options.journal.append(key, [release], before?.version ?? 0)
      if (version === 'conflict') throw new Error(`the journal knows more of ${key} than this process`)
    } catch (error) {
      this.#options.onFault(error)
      throw new CodedRefusalError(503, 'unavailable', 'the journal of releases cannot be written', {
        'retry-after': '10',
      })
    }
  }

  /** Ends a release. Caller must hold the session's lock. */
  end(release: Release, why: EndReason): Promise<void> {
    return this.write({ ...release, ended: { why, at: this.#options.clock.now() } })
  }

  *open(): Generator<Release> {
    for (const { release } of this.#sessions.values()) if (release.ended === null) yield release
  }

  /** Removes releases that ended long ago, when there are enough of them. */
  async compact(): Promise<void> {
    if (this.#follower.events < this.#sessions.size + COMPACT_AFTER_LINES) return
    const old: Entry[] = []
    const snapshot = () => {
      const retained: JournalSnapshot<Release>[] = []
      const rememberFrom = this.#options.clock.now() - REMEMBER_MS
      for (const [key, entry] of this.#sessions) {
        const { release, version } = entry
        if (release.ended === null || release.ended.at > rememberFrom) retained.push({ key, version, event: release })
        else old.push(entry)
      }
      return retained
    }
    try {
      await this.#follower.compact(snapshot)
      for (const entry of old) this.#forget(entry)
    } catch (error) {
      this.#options.onFault(error)
    }
  }

  async close(): Promise<void> {
    this.#follower.close()
    await this.#options.journal.close()
  }

  #apply({ key, version, event }: JournalEntry<Release>): void {
    const before = this.#sessions.get(key)?.release
    if (before !== undefined) {
      this.#counts[stateOf(before)]--
      if (before.ended === null) this.#open.release(before.name.namespace)
      if (before.id !== event.id) this.#ids.delete(before.id)
    }
    this.#counts[stateOf(event)]++
    if (event.ended === null) this.#open.add(event.name.namespace)
    this.#sessions.set(key, { release: event, version })
    this.#ids.set(event.id, key)
  }

  /** Unless it was replaced meanwhile. */
  #forget(entry: Entry): void {
    const key = sessionKey(entry.release.name)
    if (this.#sessions.get(key) !== entry) return
    this.#sessions.delete(key)
    this.#ids.delete(entry.release.id)
    this.#counts.ended--
  }
}
