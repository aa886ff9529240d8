import { type Clock, ExpiringMap, type SharedPool } from '@plat/core'

/** `taken`: the key is there already. `full`: nothing more can be remembered, and whoever asks must refuse. */
export type OnceVerdict = 'inserted' | 'taken' | 'full'

/**
 * What may happen once: nonces, replays, binds. An entry has an end, after which it is not there any more; `until` is in
 * milliseconds since the epoch by the clock of whoever asks. A set that cannot be reached throws, and its feature denies.
 */
export interface OnceSet {
  /**
   * Never overwrites. Of several callers at the same time, on whatever replica, exactly one is told `inserted`. `caller` names whose share
   * of the set's pool is used, where it has one.
   */
  insert(key: string, value: string, until: number, caller?: string): OnceVerdict | Promise<OnceVerdict>
  get(key: string): string | null | Promise<string | null>
  /** Removes an entry and answers its value: of several callers exactly one gets it. */
  take(key: string): string | null | Promise<string | null>
}

/** Sets by name, behind one backend. */
export interface OnceSets {
  /** `cap`: entries at most; how exactly it is kept is the backend's. Shares of a pool hold for what this process inserts. */
  set(name: string, cap: number | SharedPool): OnceSet
  close(): Promise<void>
}

/** Sets in the memory of this process: each replica has its own. They answer at once, and the cap is exact. */
export function memoryOnceSets(clock: Clock): OnceSets {
  return {
    set: (_name, cap) => new ExpiringMap<string>({ clock, cap }),
    close: async () => {},
  }
}
