import { type Clock, ExpiringMap, type SharedPool } from '@plat/core'

/** `taken`: the key exists. `full`: nothing more can be stored, and the caller must refuse. */
export type OnceVerdict = 'inserted' | 'taken' | 'full'

/**
 * Keys that may be used once: nonces, replay checks, binds. An entry does not exist after its end; `until` is in milliseconds since the epoch by the
 * clock of the caller. An unreachable set throws, and its feature denies.
 */
export interface OnceSet {
  /**
   * Never overwrites. Of concurrent callers on any replica, exactly one gets `inserted`. `caller` selects the share of the set's pool, if it has
   * one.
   */
  insert(key: string, value: string, until: number, caller?: string): OnceVerdict | Promise<OnceVerdict>
  get(key: string): string | null | Promise<string | null>
  /** Removes an entry and returns its value: of several callers exactly one gets it. */
  take(key: string): string | null | Promise<string | null>
}

export interface OnceSets {
  /** `cap`: maximum number of entries; its precision depends on the backend. Shares of a pool apply to the insertions of this process. */
  set(name: string, cap: number | SharedPool): OnceSet
  close(): Promise<void>
}

/** Sets in the memory of this process: each replica has its own. Synchronous, with an exact cap. */
export function memoryOnceSets(clock: Clock): OnceSets {
  return {
    set: (_name, cap) => new ExpiringMap<string>({ clock, cap }),
    close: async () => {},
  }
}
