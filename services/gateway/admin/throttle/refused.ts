import { type Clock, LruCache } from '@plat/core'
import { peerOf } from '@plat/http'
import type { Log } from '@plat/process'

/** Refused tokens of one peer that are answered at once; each further one in `FORGET_MS` waits. */
const FREE_REFUSALS = 5
/** First wait of a refused request, in milliseconds; it doubles with every further refusal. */
const FIRST_WAIT_MS = 100
const MAX_WAIT_MS = 3_000
/** Requests of one peer that wait at the same time; more of them are refused unread. */
const MAX_WAITING = 8
/** A peer without a refusal for this long, in milliseconds, begins anew. */
const FORGET_MS = 60_000
/** Peers that are counted at most; the one that was refused longest ago makes room. */
const MAX_PEERS = 10_000
/** One line of the log per peer in this time, in milliseconds. */
const LINE_EVERY_MS = 1_000

/** Why an admin token was refused (`plat_gateway_admin_auth_failures_total{reason}`). */
export type AdminRefusal = 'missing' | 'invalid' | 'throttled'

interface Peer {
  refusals: number
  waiting: number
  /** Monotonic milliseconds. */
  lastAt: number
  loggedAt: number
  unlogged: number
}

export interface RefusedTokensOptions {
  readonly clock: Clock
  readonly log: Log
  /** Counts each refusal. */
  readonly refused: (reason: AdminRefusal) => void
}

/**
 * Logs, counts and slows down refused admin tokens, by peer address, of IPv6 by /64: a peer that guesses waits longer each time and holds few places, and
 * other peers notice nothing. Nothing of a token is written.
 */
export class RefusedTokens {
  readonly #options: RefusedTokensOptions
  readonly #peers = new LruCache<string, Peer>({ maxEntries: MAX_PEERS })

  constructor(options: RefusedTokensOptions) {
    this.#options = options
  }

  /** Whether the peer has as many refused requests waiting as it may: its next token is not looked at. */
  isThrottled(address: string): boolean {
    const peer = this.#peers.peek(peerOf(address))
    if (peer === undefined || peer.waiting < MAX_WAITING) return false
    this.#note(address, peer, 'throttled')
    return true
  }

  /** Resolves when the refusal may be answered. */
  async refuse(address: string, reason: Exclude<AdminRefusal, 'throttled'>): Promise<void> {
    const peer = this.#peer(address)
    this.#note(address, peer, reason)
    // Without a token nothing is guessed.
    if (reason === 'missing') return
    peer.refusals++
    const over = peer.refusals - FREE_REFUSALS
    if (over <= 0) return
    peer.waiting++
    try {
      const waitMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(over - 1, 10))
      await new Promise<void>((resolve) => this.#options.clock.after(waitMs, resolve))
    } finally {
      peer.waiting--
    }
  }

  #peer(address: string): Peer {
    const now = this.#options.clock.monotonic()
    const name = peerOf(address)
    const known = this.#peers.get(name)
    if (known !== undefined && (known.waiting > 0 || now - known.lastAt < FORGET_MS)) return known
    const peer: Peer = { refusals: 0, waiting: 0, lastAt: now, loggedAt: Number.NEGATIVE_INFINITY, unlogged: 0 }
    this.#peers.set(name, peer)
    return peer
  }

  #note(address: string, peer: Peer, reason: AdminRefusal): void {
    const { clock, log, refused } = this.#options
    const now = clock.monotonic()
    peer.lastAt = now
    refused(reason)
    if (now - peer.loggedAt < LINE_EVERY_MS) {
      peer.unlogged++
      return
    }
    log.warn({ peer: address, reason, suppressed: peer.unlogged }, 'an admin token was refused')
    peer.loggedAt = now
    peer.unlogged = 0
  }
}
