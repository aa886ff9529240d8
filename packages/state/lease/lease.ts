import type { Clock } from '@plat/core'

/** Work on one thing that only one replica may do at a time, for a bounded time. */
export interface Leases {
  /**
   * Returns null while there is a lease of this name, here or on another replica. It ends after `ttlMs` unless it is released before. Rejects with
   * StateUnreachableError when it is not known whether there is one.
   */
  acquire(name: string, ttlMs: number): Promise<Lease | null>
}

export interface Lease {
  /** Milliseconds for which no other replica can have it; at most 0: it is over. */
  leftMs(): number
  /** Never rejects: a lease that cannot be released ends by itself. */
  release(): Promise<void>
}

/** Leases in the memory of this process. */
export function memoryLeases(clock: Clock): Leases {
  const ends = new Map<string, { readonly at: number }>()
  return {
    async acquire(name, ttlMs) {
      const now = clock.monotonic()
      if ((ends.get(name)?.at ?? now) > now) return null
      const end = { at: now + ttlMs }
      ends.set(name, end)
      return {
        leftMs: () => end.at - clock.monotonic(),
        async release() {
          if (ends.get(name) === end) ends.delete(name)
        },
      }
    },
  }
}
