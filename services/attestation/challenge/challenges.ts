import { type Clock, ExpiringMap, type PoolObserver, type SharedPool, watchedPool } from '@plat/core'

/** How long a challenge lives, in milliseconds: as long as the broker's nonce. */
const LIFE_MS = 5 * 60 * 1000

/** Purpose of a nonce. */
export interface Challenge {
  readonly releaseId: string
  readonly check: string
  /** Thumbprint of the workload's key. */
  readonly jkt: string
}

/** Outstanding nonces: each is valid once, for one release, one check and one key. */
export class Challenges {
  readonly #clock: Clock
  readonly #outstanding: ExpiringMap<Challenge>
  /** Challenges made for a release, including used ones: each costs the broker a nonce. */
  readonly #made: ExpiringMap<true>
  #count = 0

  constructor(clock: Clock, observer?: PoolObserver) {
    this.#clock = clock
    const pool: SharedPool = watchedPool({ name: 'challenges', observer })
    this.#outstanding = new ExpiringMap<Challenge>({ clock, cap: pool.total })
    this.#made = new ExpiringMap({ clock, cap: pool })
  }

  /** Counts a new challenge. Returns false when there are too many, of the release or in total. */
  admit(releaseId: string): boolean {
    return this.#made.insert(String(this.#count++), true, this.#clock.now() + LIFE_MS, releaseId) === 'inserted'
  }

  /** Returns false when there are too many. */
  keep(nonce: string, challenge: Challenge): boolean {
    return this.#outstanding.insert(nonce, challenge, this.#clock.now() + LIFE_MS) === 'inserted'
  }

  /** Uses the nonce up. Returns whether it was issued for this release, check and key. */
  redeem(nonce: string, { releaseId, check, jkt }: Challenge): boolean {
    const challenge = this.#outstanding.take(nonce)
    return challenge?.releaseId === releaseId && challenge.check === check && challenge.jkt === jkt
  }
}
