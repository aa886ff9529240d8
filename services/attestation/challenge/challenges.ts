import { type Clock, ExpiringMap } from '@plat/core'

/** Challenges that are outstanding at most, about 300 bytes each. */
const MAX_CHALLENGES = 50_000
/** How long a challenge lives, in milliseconds: as long as the broker's nonce. */
const LIFE_MS = 5 * 60 * 1000
/** Challenges of one release in that time: whoever knows its id must not use up those of all. */
const MAX_OF_RELEASE = 32

/** What a nonce was given out for. */
export interface Challenge {
  readonly releaseId: string
  readonly check: string
  /** Thumbprint of the workload's key. */
  readonly jkt: string
}

/** Nonces that are outstanding: each is good once, for one release, one check and one key. */
export class Challenges {
  readonly #clock: Clock
  readonly #outstanding: ExpiringMap<Challenge>
  readonly #counts: ExpiringMap<{ given: number }>

  constructor(clock: Clock) {
    this.#clock = clock
    this.#outstanding = new ExpiringMap<Challenge>({ clock, cap: MAX_CHALLENGES })
    this.#counts = new ExpiringMap<{ given: number }>({ clock, cap: MAX_CHALLENGES })
  }

  /** Counts a challenge that is about to be made. False: there were too many, of the release or of all. */
  admit(releaseId: string): boolean {
    const count = this.#counts.get(releaseId) ?? { given: 0 }
    if (count.given >= MAX_OF_RELEASE || this.#outstanding.isFull()) return false
    if (this.#counts.insert(releaseId, count, this.#clock.now() + LIFE_MS) === 'full') return false
    count.given++
    return true
  }

  /** False: there are too many. */
  keep(nonce: string, challenge: Challenge): boolean {
    return this.#outstanding.insert(nonce, challenge, this.#clock.now() + LIFE_MS) === 'inserted'
  }

  /** Uses the nonce up. Was it given out for just this? */
  redeem(nonce: string, { releaseId, check, jkt }: Challenge): boolean {
    const challenge = this.#outstanding.take(nonce)
    return challenge?.releaseId === releaseId && challenge.check === check && challenge.jkt === jkt
  }
}
