import { type Clock, ExpiringMap } from '@plat/core'

/** Proofs that are remembered for one release in each window: a workload makes three for each token. */
export const PROOFS_OF_RELEASE = 300
/** Length of a window, in milliseconds. */
const WINDOW_MS = 5 * 60_000
/** Releases that are counted at one time: as many as there can be. */
const RELEASES_MAX = 50_000

/**
 * Counts the proofs of each release. The store of proofs has a share for each key, but a workload makes as many keys as it likes; releases are made
 * by whoever holds the service token.
 */
export class ProofShares {
  readonly #clock: Clock
  readonly #onRefused: () => void
  readonly #counts: ExpiringMap<{ proofs: number }>

  constructor(clock: Clock, onRefused: () => void) {
    this.#clock = clock
    this.#onRefused = onRefused
    this.#counts = new ExpiringMap({ clock, cap: RELEASES_MAX })
  }

  /** Counts one proof; false: the release has used its share. */
  admit(releaseId: string): boolean {
    const known = this.#counts.get(releaseId)
    const count = known ?? { proofs: 0 }
    const isFull = known === null && this.#counts.insert(releaseId, count, this.#clock.now() + WINDOW_MS) === 'full'
    if (isFull || count.proofs >= PROOFS_OF_RELEASE) {
      this.#onRefused()
      return false
    }
    count.proofs++
    return true
  }
}
