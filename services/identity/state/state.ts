import { type Clock, type Ids, watchedPool } from '@plat/core'
import { OAuthError } from '@plat/http/endpoints'
import { memoryOnceSets, type OnceSet, type OnceSets, StateUnreachableError } from '@plat/state'
import { memoryReplayStore, type ReplayStore, sharedReplayStore } from '@plat/tokens'
import { type BindRecords, bindRecords } from '../bind/records.ts'
import { createOnce, type Once } from '../delegate/once.ts'
import { createNonces, type Nonces } from '../nonce/nonces.ts'
import { createFirstUse, type FirstUse } from '../proof/parts/first-use.ts'
import type { BrokerPools } from '../serve/pools.ts'

/** Proofs of all replicas that are remembered at most. */
const MAX_SHARED_PROOFS = 1_000_000

/** State of the broker between requests. */
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
  /** Absent: refusals of full pools are not observed. */
  readonly pools?: BrokerPools
}

/** State of this process alone. */
export function memoryState(parts: StateParts): BrokerState {
  return { ...stateOver(memoryOnceSets(parts.clock), parts), replays: localReplays(parts) }
}

/** State that every replica on the same backend shares. While it cannot be reached, what needs it is refused with 503. */
export function sharedState(sets: OnceSets, parts: StateParts): BrokerState {
  const refusing: OnceSets = {
    set: (name, cap) => refuseUnreachable(sets.set(name, cap)),
    close: () => sets.close(),
  }
  const replays = sharedReplayStore(localReplays(parts), refusing.set('dpop', MAX_SHARED_PROOFS))
  return { ...stateOver(refusing, parts), replays }
}

function localReplays({ clock, pools }: StateParts): ReplayStore {
  return memoryReplayStore(clock, watchedPool({ name: 'holder_proofs', observer: pools?.of('holder_proofs') }))
}

function stateOver(sets: OnceSets, { clock, ids, pools }: StateParts): Omit<BrokerState, 'replays'> {
  const common = { sets, clock, ids }
  return {
    records: bindRecords(sets, pools?.of('bound_tokens')),
    nonces: createNonces({ ...common, observer: pools?.of('nonces') }),
    once: createOnce({ ...common, observer: pools?.of('transactions') }),
    firstUse: createFirstUse(sets, pools?.of('used_credentials')),
  }
}

function refuseUnreachable(set: OnceSet): OnceSet {
  return {
    insert: (key, value, until, caller) => orRefuse(async () => set.insert(key, value, until, caller)),
    get: (key) => orRefuse(async () => set.get(key)),
    take: (key) => orRefuse(async () => set.take(key)),
  }
}

async function orRefuse<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof StateUnreachableError)) throw error
    throw new OAuthError(503, 'temporarily_unavailable', 'the shared state cannot be reached: try again later')
  }
}
