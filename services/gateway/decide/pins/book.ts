import { type Clock, LruCache } from '@plat/core'
import { type Journal, type JournalEntry, JournalFollower } from '@plat/state'
import { NO_DIGEST, type Offered } from './definition.ts'
import type { PinEvent } from './events.ts'
import type { PinRules, Standing } from './rules.ts'

/** Bound of remembered tools per server; further ones count as unpinned. */
export const TOOLS_PER_SERVER_MAX = 4096
/** LRU bound of remembered servers. */
export const SERVERS_MAX = 10_000

/** A change of a tool that is recorded and counted. */
export interface PinNotice {
  readonly server: string
  readonly t: 'learned' | 'drifted'
  readonly tool: string
  readonly digest: string
}

export interface PinBookOptions {
  readonly journal: Journal<PinEvent>
  readonly clock: Clock
  /** Called once for each new definition, when it is durable. */
  readonly onNotice: (notice: PinNotice) => void
  readonly onFault: (error: unknown) => void
}

export interface ToolState {
  readonly tool: string
  /** Digest of the definition offered last; null: none since the gateway started. */
  readonly digest: string | null
  /** Null if `digest` is. */
  readonly standing: Standing | null
  /** Digests that it is compared with; empty: none. */
  readonly pins: readonly string[]
  /** Origin of the pins: resources, or the journal (learned or accepted). */
  readonly source: 'resources' | 'journal' | null
  /** A person rejected the definition offered last. */
  readonly rejected: boolean
}

interface ObservedTool {
  digest: string
  /** Monotonic, in milliseconds. */
  at: number
}

class ServerTools {
  /** Wall clock time of the last list, in milliseconds; null: none since the gateway started. */
  seenAt: number | null = null
  /** Learned and accepted digests by tool name. */
  readonly learned = new Map<string, string>()
  /** `<tool>\n<digest>` of reported drifts. */
  readonly reported = new Set<string>()
  /** Digests of definitions that a person rejected, by tool name. */
  readonly rejected = new Map<string, Set<string>>()
  /** Definitions offered last, by tool name. */
  readonly seen = new Map<string, ObservedTool>()
}

/** Bound of the total length of stored definitions, in characters. The oldest are evicted. */
const DEFINITIONS_MAX_CHARS = 16_777_216

/**
 * Tool definitions that servers offered: the latest one of each tool, and the first one seen in mode `learn`. A definition offered to
 * any session counts for all until the server offers another.
 */
export class PinBook {
  readonly #options: PinBookOptions
  readonly #servers = new LruCache<string, ServerTools>({ maxEntries: SERVERS_MAX })
  /** Definitions by digest. */
  readonly #texts = new LruCache<string, string>({
    maxEntries: Number.POSITIVE_INFINITY,
    maxWeight: DEFINITIONS_MAX_CHARS,
    weigh: (text) => text.length,
  })
  readonly #follower: JournalFollower<PinEvent>

  private constructor(options: PinBookOptions) {
    this.#options = options
    const { journal, onFault } = options
    // Events of this replica change nothing when they return. If two replicas learn at once, all use the later event.
    this.#follower = new JournalFollower({
      ...{ journal, onFault },
      apply: ({ key, event }) => this.#apply(key, event),
      replace: (entries) => this.#replace(entries),
    })
  }

  /** Reads the journal, then serves. Rejects if it cannot be read: forgotten pins would be learned again. */
  static async open(options: PinBookOptions): Promise<PinBook> {
    const book = new PinBook(options)
    await book.#follower.open()
    return book
  }

  close(): void {
    this.#follower.close()
  }

  /** Records the tools that a server offers. Returns the standing of each. */
  observe(server: string, rules: PinRules, offered: readonly Offered[]): readonly Standing[] {
    const known = this.#of(server)
    const at = this.#options.clock.monotonic()
    known.seenAt = this.#options.clock.now()
    return offered.map((tool) => {
      const { name, digest, text } = tool
      if (text !== null) this.#keepText(digest, text)
      const before = known.seen.get(name)
      if (before !== undefined) Object.assign(before, { digest, at })
      else if (known.seen.size < TOOLS_PER_SERVER_MAX) known.seen.set(name, { digest, at })
      return this.#stand(server, known, rules, tool)
    })
  }

  /** Returns the latest digest of a tool, or null if it was not offered within `maxAgeMs`. */
  lastSeen(server: string, tool: string, maxAgeMs: number): string | null {
    const seen = this.#servers.peek(server)?.seen.get(tool)
    if (seen === undefined || this.#options.clock.monotonic() - seen.at > maxAgeMs) return null
    return seen.digest
  }

  /** Compares a definition with the pins of the rules, or with the learned digest if the rules do not name the tool. */
  standing(server: string, rules: PinRules, { name, digest }: Pick<Offered, 'name' | 'digest'>): Standing {
    const pins = rules.pins.get(name)
    if (pins !== undefined) return pins.has(digest) ? 'pinned' : 'drifted'
    const learned = this.#servers.peek(server)?.learned.get(name)
    if (learned === undefined) return 'unpinned'
    return learned === digest ? 'pinned' : 'drifted'
  }

  /** Whether a person rejected this definition, and none accepted it since. */
  isRejected(server: string, { name, digest }: Pick<Offered, 'name' | 'digest'>): boolean {
    return this.#servers.peek(server)?.rejected.get(name)?.has(digest) ?? false
  }

  /** Number of rejected definitions of a tool, or of all tools of a server. */
  rejectedCount(server: string, tool?: string): number {
    const rejected = this.#servers.peek(server)?.rejected
    if (tool !== undefined) return rejected?.get(tool)?.size ?? 0
    return [...(rejected?.values() ?? [])].reduce((sum, { size }) => sum + size, 0)
  }

  /** Known servers. */
  servers(): Iterable<string> {
    return this.#servers.keys()
  }

  /** Wall clock time when a server's tools were last offered, in milliseconds; null: not since the gateway started. */
  seenAt(server: string): number | null {
    return this.#servers.peek(server)?.seenAt ?? null
  }

  /** Every tool of a server that was offered, learned or is pinned by the rules; sorted by name. */
  tools(server: string, rules: PinRules): readonly ToolState[] {
    const known = this.#servers.peek(server)
    const names = new Set([...(known?.seen.keys() ?? []), ...(known?.learned.keys() ?? []), ...rules.pins.keys()])
    return [...names].toSorted().map((tool): ToolState => {
      const digest = known?.seen.get(tool)?.digest ?? null
      const standing = digest === null ? null : this.standing(server, rules, { name: tool, digest })
      const rejected = standing !== 'pinned' && digest !== null && this.isRejected(server, { name: tool, digest })
      const pinned = rules.pins.get(tool)
      if (pinned !== undefined) return { tool, digest, standing, pins: [...pinned], source: 'resources', rejected }
      const learned = known?.learned.get(tool)
      const pins = learned === undefined ? [] : [learned]
      return { tool, digest, standing, pins, source: learned === undefined ? null : 'journal', rejected }
    })
  }

  /** Returns the canonical form of the definition with this digest, or null if it is unknown or evicted. */
  definition(digest: string): string | null {
    return this.#texts.peek(digest) ?? null
  }

  /**
   * `accepted`: makes this the pinned definition of a tool unless the rules pin another; `rejected`: refuses it until it is accepted. Resolves when
   * durable.
   */
  async decide(
    server: string,
    t: 'accepted' | 'rejected',
    { tool, digest, by }: { readonly tool: string; readonly digest: string; readonly by: string },
  ): Promise<void> {
    const definition = this.definition(digest)
    const decided = { t, tool, digest, ...(definition !== null && { definition }), by }
    await this.#options.journal.append(server, [decided])
    this.#apply(server, decided)
  }

  #stand(server: string, known: ServerTools, rules: PinRules, tool: Offered): Standing {
    const standing = this.standing(server, rules, tool)
    const { name, digest } = tool
    if (
      standing === 'drifted' &&
      known.reported.size < TOOLS_PER_SERVER_MAX &&
      !known.reported.has(`${name}\n${digest}`)
    ) {
      this.#keep(server, 'drifted', tool)
    }
    const learns =
      standing === 'unpinned' && rules.mode === 'learn' && digest !== NO_DIGEST && !this.isRejected(server, tool)
    if (!learns || known.learned.size >= TOOLS_PER_SERVER_MAX) return standing
    this.#keep(server, 'learned', tool)
    return 'pinned'
  }

  /** In force at once and reported when durable. A pin that cannot be stored holds until the process ends. */
  #keep(server: string, t: PinNotice['t'], { name: tool, digest, text }: Offered): void {
    const event = { t, tool, digest, ...(text !== null && { definition: text }) }
    this.#apply(server, event)
    const notice = { server, t, tool, digest }
    this.#options.journal.append(server, [event]).then(() => this.#options.onNotice(notice), this.#options.onFault)
  }

  #apply(server: string, { t, tool, digest, definition }: PinEvent): void {
    const known = this.#of(server)
    if (definition !== undefined) this.#keepText(digest, definition)
    if (t === 'rejected') return void known.rejected.getOrInsertComputed(tool, () => new Set()).add(digest)
    if (t === 'accepted') known.rejected.get(tool)?.delete(digest)
    if (t !== 'drifted') known.learned.set(tool, digest)
    else if (known.reported.size < TOOLS_PER_SERVER_MAX) known.reported.add(`${tool}\n${digest}`)
  }

  /** Rebuilds the state from the journal. */
  #replace(entries: readonly JournalEntry<PinEvent>[]): void {
    for (const { learned, reported, rejected } of this.#servers.values()) {
      learned.clear()
      reported.clear()
      rejected.clear()
    }
    for (const { key, event } of entries) this.#apply(key, event)
  }

  #keepText(digest: string, text: string): void {
    if (this.#texts.get(digest) === undefined) this.#texts.set(digest, text)
  }

  #of(server: string): ServerTools {
    const known = this.#servers.get(server)
    if (known !== undefined) return known
    const added = new ServerTools()
    this.#servers.set(server, added)
    return added
  }
}
