import { type Clock, LruCache } from '@plat/core'
import type { Journal, JournalEntry } from '@plat/state'
import { NO_DIGEST, type Offered } from './definition.ts'
import type { PinEvent } from './events.ts'
import type { PinRules, Standing } from './rules.ts'

/** Tools of one server that are remembered; further ones count as unpinned. */
export const TOOLS_PER_SERVER_MAX = 4096
/** Servers that are remembered; the one that was seen longest ago makes room. */
export const SERVERS_MAX = 10_000

/** Something about a tool that somebody wants to know. */
export interface PinNotice {
  readonly server: string
  readonly t: 'learned' | 'drifted'
  readonly tool: string
  readonly digest: string
}

export interface PinBookOptions {
  readonly journal: Journal<PinEvent>
  readonly clock: Clock
  /** Told once of each new definition, when the journal has it. */
  readonly onNotice: (notice: PinNotice) => void
  readonly onFault: (error: unknown) => void
}

/** One tool of a server, as far as it is known. */
export interface ToolState {
  readonly tool: string
  /** Of the last definition that anybody was offered; null: none since the gateway started. */
  readonly digest: string | null
  /** Null where `digest` is. */
  readonly standing: Standing | null
  /** What it is held against; empty: nothing. */
  readonly pins: readonly string[]
  /** Where the pins come from: resources, or what was learned or accepted. */
  readonly source: 'resources' | 'journal' | null
}

interface ObservedTool {
  digest: string
  /** Monotonic, in milliseconds. */
  at: number
}

/** What is known of one server's tools. */
class ServerTools {
  /** Wall clock of the last list, in milliseconds; null: none since the gateway started. */
  seenAt: number | null = null
  /** Definitions of mode `learn`, and accepted ones. */
  readonly learned = new Map<string, string>()
  /** `<tool>\n<digest>` of what was told as drift. */
  readonly told = new Set<string>()
  /** The last definition that anybody was offered. */
  readonly seen = new Map<string, ObservedTool>()
}

/** Characters of all definitions that are kept for people to read; the one that was offered longest ago makes room. */
const DEFINITIONS_MAX_CHARS = 16_777_216

/**
 * What servers offered: the last definition of each tool, whoever it was offered to, and the first one of mode `learn`. A
 * definition that was shown to one session and not to others counts for all, until the server offers another.
 */
export class PinBook {
  readonly #options: PinBookOptions
  readonly #servers = new LruCache<string, ServerTools>({ maxEntries: SERVERS_MAX })
  /** By their digest. */
  readonly #texts = new LruCache<string, string>({
    maxEntries: Number.POSITIVE_INFINITY,
    maxWeight: DEFINITIONS_MAX_CHARS,
    weigh: (text) => text.length,
  })
  readonly #stop = new AbortController()

  private constructor(options: PinBookOptions) {
    this.#options = options
  }

  /** Reads the journal, then answers. Rejects when it cannot be read: pins that are forgotten would be learned anew. */
  static async open(options: PinBookOptions): Promise<PinBook> {
    const book = new PinBook(options)
    let last = 0
    for await (const { seq, key, event } of options.journal.read(0)) {
      book.#apply(key, event)
      last = seq
    }
    // What this replica wrote itself changes nothing when it comes back, and of two that learned at once all take the later.
    options.journal
      .follow(
        last,
        ({ key, event }) => book.#apply(key, event),
        book.#stop.signal,
        (entries) => book.#replace(entries),
      )
      .catch(options.onFault)
    return book
  }

  close(): void {
    this.#stop.abort()
  }

  /** Takes note of what a server offers, and answers how each of the tools stands. */
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

  /** The last definition of a tool, or null when nobody was offered it within `maxAgeMs`. */
  lastSeen(server: string, tool: string, maxAgeMs: number): string | null {
    const seen = this.#servers.peek(server)?.seen.get(tool)
    if (seen === undefined || this.#options.clock.monotonic() - seen.at > maxAgeMs) return null
    return seen.digest
  }

  /** How a definition stands against what the rules pin; what they do not name is held against what was learned. */
  standing(server: string, rules: PinRules, { name, digest }: Pick<Offered, 'name' | 'digest'>): Standing {
    const pins = rules.pins.get(name)
    if (pins !== undefined) return pins.has(digest) ? 'pinned' : 'drifted'
    const learned = this.#servers.peek(server)?.learned.get(name)
    if (learned === undefined) return 'unpinned'
    return learned === digest ? 'pinned' : 'drifted'
  }

  /** Servers that something is known of. */
  servers(): Iterable<string> {
    return this.#servers.keys()
  }

  /** When a server's tools were last offered to anybody, in milliseconds; null: not since the gateway started. */
  seenAt(server: string): number | null {
    return this.#servers.peek(server)?.seenAt ?? null
  }

  /** Every tool of a server that was offered, learned or is named by the rules; by name. */
  tools(server: string, rules: PinRules): readonly ToolState[] {
    const known = this.#servers.peek(server)
    const names = new Set([...(known?.seen.keys() ?? []), ...(known?.learned.keys() ?? []), ...rules.pins.keys()])
    return [...names].toSorted().map((tool): ToolState => {
      const digest = known?.seen.get(tool)?.digest ?? null
      const standing = digest === null ? null : this.standing(server, rules, { name: tool, digest })
      const pinned = rules.pins.get(tool)
      if (pinned !== undefined) return { tool, digest, standing, pins: [...pinned], source: 'resources' }
      const learned = known?.learned.get(tool)
      const pins = learned === undefined ? [] : [learned]
      return { tool, digest, standing, pins, source: learned === undefined ? null : 'journal' }
    })
  }

  /** The definition with this digest in its canonical form; null where it is not known, or no more. */
  definition(digest: string): string | null {
    return this.#texts.peek(digest) ?? null
  }

  /** From now on this definition of a tool is the right one, where the rules pin no other. Resolves when it is durable. */
  async accept(
    server: string,
    { tool, digest, by }: { readonly tool: string; readonly digest: string; readonly by: string },
  ): Promise<void> {
    const definition = this.definition(digest)
    const accepted = { t: 'accepted', tool, digest, ...(definition !== null && { definition }), by } as const
    await this.#options.journal.append(server, [accepted])
    this.#apply(server, accepted)
  }

  #stand(server: string, known: ServerTools, rules: PinRules, tool: Offered): Standing {
    const standing = this.standing(server, rules, tool)
    const { name, digest } = tool
    if (standing === 'drifted' && known.told.size < TOOLS_PER_SERVER_MAX && !known.told.has(`${name}\n${digest}`)) {
      this.#keep(server, 'drifted', tool)
    }
    const learns = standing === 'unpinned' && rules.mode === 'learn' && digest !== NO_DIGEST
    if (!learns || known.learned.size >= TOOLS_PER_SERVER_MAX) return standing
    this.#keep(server, 'learned', tool)
    return 'pinned'
  }

  /** In force at once, told when it is durable: a pin that could not be kept holds as long as the process. */
  #keep(server: string, t: PinNotice['t'], { name: tool, digest, text }: Offered): void {
    const event = { t, tool, digest, ...(text !== null && { definition: text }) }
    this.#apply(server, event)
    const notice = { server, t, tool, digest }
    this.#options.journal.append(server, [event]).then(() => this.#options.onNotice(notice), this.#options.onFault)
  }

  #apply(server: string, { t, tool, digest, definition }: PinEvent): void {
    const known = this.#of(server)
    if (definition !== undefined) this.#keepText(digest, definition)
    if (t !== 'drifted') known.learned.set(tool, digest)
    else if (known.told.size < TOOLS_PER_SERVER_MAX) known.told.add(`${tool}\n${digest}`)
  }

  /** Starts over with what the journal holds. */
  #replace(entries: readonly JournalEntry<PinEvent>[]): void {
    for (const { learned, told } of this.#servers.values()) {
      learned.clear()
      told.clear()
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
