import type { Clock, Ids } from '@plat/core'
import { OAuthRefusal } from '@plat/http/endpoints'
import { memoryOnceSets, type OnceSet, type OnceSets, StateUnreachable } from '@plat/state'
import { memoryReplayStore, type ReplayStore } from '@plat/tokens'
import { type BindRecords, bindRecords } from '../bind/records.ts'
import { createOnce, type Once } from '../delegate/once.ts'
import { createNonces, type Nonces } from '../nonce/nonces.ts'
import { createFirstUse, type FirstUse } from '../proof/parts/first-use.ts'
import { sharedReplays } from './replays.ts'

/** What the broker remembers between two requests. */
export interface BrokerState {
  readonly records: BindRecords
  readonly nonces: Nonces
  readonly replays: ReplayStore
  /** Uses of transaction tokens. */
  readonly once: Once
  /** Uses of credentials that carry no nonce. */
  readonly firstUse: FirstUse
}

export interface StateParts {
  readonly clock: Clock
  readonly ids: Ids
}

/** State of this process alone. */
export function memoryState(parts: StateParts): BrokerState {
  return { ...stateOver(memoryOnceSets(parts.clock), parts), replays: memoryReplayStore(parts.clock) }
}

/** State that every replica on the same backend shares. While it cannot be reached, what needs it is refused with 503. */
export function sharedState(sets: OnceSets, parts: StateParts): BrokerState {
  const refusing: OnceSets = {
    set: (name, cap) => refuseUnreachable(sets.set(name, cap)),
    close: () => sets.close(),
  }
  const replays = sharedReplays(memoryReplayStore(parts.clock), refusing)
  return { ...stateOver(refusing, parts), replays }
}

function stateOver(sets: OnceSets, { clock, ids }: StateParts): Omit<BrokerState, 'replays'> {
  return {
    records: bindRecords(sets),
    nonces: createNonces({ sets, clock, ids }),
    once: createOnce({ sets, clock, ids }),
    firstUse: createFirstUse(sets),
  }
}

function refuseUnreachable(set: OnceSet): OnceSet {
  return {
    insert: (key, value, until) => orRefuse(async () => set.insert(key, value, until)),
    get: (key) => orRefuse(async () => set.get(key)),
    take: (key) => orRefuse(async () => set.take(key)),
  }
}

async function orRefuse<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof StateUnreachable)) throw error
    throw new OAuthRefusal(503, 'temporarily_unavailable', 'the shared state cannot be reached: try again later')
  }
}
