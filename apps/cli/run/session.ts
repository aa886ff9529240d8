import type { Clock } from '@plat/core'
import type { Minted } from '../shared/broker.ts'

/** A session token that stays valid: minted again for the same session at two thirds of its life. */
export interface LiveSession {
  /** The token to send now. */
  token(): string
  /**
   * Forgets the token and stops minting. Answers when every token of the session has expired, in milliseconds since the
   * epoch: one that is being minted now may outlive the one that was sent last.
   */
  end(): number
}

/** How soon a failed mint is tried again. */
const RETRY_MS = 5_000

/** Mints at once, then before each expiry; `failed` is called for each mint that fails (the old token stays in use). */
export async function openSession(options: {
  readonly clock: Clock
  readonly mint: () => Promise<Minted>
  readonly failed: (error: unknown) => void
}): Promise<LiveSession> {
  const { clock, mint, failed } = options
  let current = await mint()
  let longestMs = lifeLeft(current, clock)
  let cancel = clock.after(twoThirds(current, clock), renew)
  let ended = false

  function renew(): void {
    mint().then(
      (next) => {
        if (ended) return
        current = next
        longestMs = Math.max(longestMs, lifeLeft(next, clock))
        cancel = clock.after(twoThirds(next, clock), renew)
      },
      (error: unknown) => {
        if (ended) return
        failed(error)
        cancel = clock.after(RETRY_MS, renew)
      },
    )
  }

  return {
    token: () => current.token,
    end() {
      ended = true
      cancel()
      current = { ...current, token: '' }
      return clock.now() + longestMs
    },
  }
}

function twoThirds(minted: Minted, clock: Clock): number {
  return Math.max(RETRY_MS, (lifeLeft(minted, clock) * 2) / 3)
}

function lifeLeft(minted: Minted, clock: Clock): number {
  return Date.parse(minted.expiresAt) - clock.now()
}
