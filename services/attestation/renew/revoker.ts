import { type Clock, type PoolObserver, rfc3339, type SharedPool, watchedPool } from '@plat/core'
import { type Dialer, dialFault } from '@plat/http'
import type { Log } from '@plat/process'
import { type Release, sessionKey } from '../release/release.ts'

/** Deadline of one request to the gateway, and pause before the next try, in milliseconds. */
const TIMEOUT_MS = 10_000
const RETRY_MS = 5_000
const MAX_RESPONSE_BYTES = 64 * 1024

export interface RevokerOptions {
  /** Without a trailing slash; empty: nothing is revoked, and a refused renewal ends with its token. */
  readonly url: string
  readonly adminToken: string | null
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly log: Log
  readonly observer?: PoolObserver | undefined
}

/**
 * Revokes sessions at a gateway (`POST /v1/revocations` of its admin API) when their platform fails attestation, for the life of their last token.
 * Retries until the gateway accepts, or nothing is left to revoke.
 */
export class Revoker {
  readonly #options: RevokerOptions
  readonly #waiting = new Map<string, { readonly release: Release; readonly why: string }>()
  readonly #stop: () => void
  readonly #pool: SharedPool
  #running = false

  constructor(options: RevokerOptions) {
    this.#options = options
    this.#pool = watchedPool({ name: 'pending_revocations', observer: options.observer })
    this.#stop = options.clock.every(RETRY_MS, () => void this.#run())
  }

  revoke(release: Release, why: string): void {
    if (this.#options.url === '' || release.holder === null) return
    if (this.#waiting.has(release.id)) return
    if (this.#pool.acquire(release.name.namespace) !== null) {
      this.#options.log.error({ releaseId: release.id }, 'too many revocations are queued: one is dropped')
      return
    }
    this.#waiting.set(release.id, { release, why })
    void this.#run()
  }

  close(): void {
    this.#stop()
  }

  async #run(): Promise<void> {
    if (this.#running) return
    this.#running = true
    try {
      for (const [id, { release, why }] of this.#waiting) {
        if (!isOver(release, this.#options.clock) && !(await this.#ask(release, why))) continue
        this.#waiting.delete(id)
        this.#pool.release(release.name.namespace)
      }
    } finally {
      this.#running = false
    }
  }

  /** Returns whether the gateway accepted the revocation. */
  async #ask({ name, holder, id }: Release, why: string): Promise<boolean> {
    const { url, adminToken, dialer, log } = this.#options
    const reason = `attestation ${id}: ${why}`
    const revocation = { target: { session: sessionKey(name) }, reason, expiresAt: rfc3339(holder?.tokenEndsAt ?? 0) }
    try {
      const { status } = await dialer.fetchBytes(`${url}/v1/revocations`, 'policy', {
        method: 'POST',
        headers: { authorization: `Bearer ${adminToken ?? ''}`, 'content-type': 'application/json' },
        body: JSON.stringify(revocation),
        maxBytes: MAX_RESPONSE_BYTES,
        timeoutMs: TIMEOUT_MS,
      })
      if (status === 201) return true
      log.error({ status, releaseId: id }, 'the gateway did not accept a revocation')
    } catch (error) {
      log.error({ error: dialFault(error), releaseId: id }, 'the gateway could not be reached for a revocation')
    }
    return false
  }
}

/** The last token has ended: there is nothing left to revoke. */
function isOver({ holder }: Release, clock: Clock): boolean {
  return holder === null || holder.tokenEndsAt <= clock.now()
}
