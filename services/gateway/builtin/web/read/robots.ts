import { type Clock, LruCache } from '@plat/core'
import { isDenial } from '../../../call/index.ts'
import type { Follower, Trip } from './follow.ts'
import { everything, nothing, parseRobots, productOf, type RobotsRules } from './robots-rules.ts'

/** Maximum size of a `robots.txt`, in bytes (RFC 9309, section 2.5: at least 500 KiB). */
const MAX_ROBOTS_BYTES = 512_000
/** Cache lifetime of rules, in milliseconds (RFC 9309, section 2.4: at most a day). */
const KEPT_MS = 3_600_000
/** Cache lifetime of a failure, in milliseconds. */
const UNREACHED_MS = 60_000
/** Maximum number of cached sites; the least recently used is evicted. */
const MAX_SITES = 1_024
/** Maximum size of all cached rules, in characters; the least recently used are evicted. */
const MAX_KEPT_CHARACTERS = 16 * 1024 * 1024

interface CachedRules {
  readonly rules: RobotsRules
  readonly until: number
}

/** Rules of sites for robots, fetched once per hour (RFC 9309). */
export class Robots {
  readonly #follower: Follower
  readonly #clock: Clock
  readonly #product: string
  readonly #sites = new LruCache<string, CachedRules>({
    maxEntries: MAX_SITES,
    maxWeight: MAX_KEPT_CHARACTERS,
    weigh: ({ rules }) => rules.size,
  })

  constructor(follower: Follower, clock: Clock, userAgent: string) {
    this.#follower = follower
    this.#clock = clock
    this.#product = productOf(userAgent)
  }

  /** Returns why a page must not be requested, or null. */
  async fault(url: URL, trip: Omit<Trip, 'wants' | 'before'>): Promise<string | null> {
    const rules = this.#known(url.origin) ?? (await this.#ask(url.origin, trip))
    if (rules === nothing) return 'the robots.txt of its host cannot be read, which forbids everything'
    return (await rules.allows(url.pathname + url.search)) ? null : 'the robots.txt of its host forbids it'
  }

  #known(origin: string): RobotsRules | null {
    const cached = this.#sites.get(origin)
    if (cached === undefined) return null
    if (cached.until > this.#clock.monotonic()) return cached.rules
    this.#sites.delete(origin)
    return null
  }

  async #ask(origin: string, trip: Omit<Trip, 'wants' | 'before'>): Promise<RobotsRules> {
    const own = { ...trip, maxBytes: MAX_ROBOTS_BYTES, accept: 'text/plain, */*;q=0.1', wants: () => true }
    const answer = await this.#follower.follow(new URL('/robots.txt', origin), own)
    const rules = this.#rulesIn(answer)
    // An aborted request says nothing about the site.
    if (!trip.signal.aborted) this.#keep(origin, rules)
    return rules
  }

  /** Client errors mean that there is none; all other failures forbid everything (RFC 9309, section 2.3.1). */
  #rulesIn(answer: Awaited<ReturnType<Follower['follow']>>): RobotsRules {
    if (isDenial(answer)) return nothing
    if (answer.kind === 'failed')
      return answer.status !== undefined && answer.status >= 400 && answer.status < 500 ? everything : nothing
    return parseRobots(
      Buffer.from(answer.bytes)
        .toString('utf8')
        .replace(/^\ufeff/, ''),
      this.#product,
    )
  }

  #keep(origin: string, rules: RobotsRules): void {
    const until = this.#clock.monotonic() + (rules === nothing ? UNREACHED_MS : KEPT_MS)
    this.#sites.set(origin, { rules, until })
  }
}
