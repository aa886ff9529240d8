import type { HoldItem } from '@plat/state'
import type { Target } from './facts.ts'
import type { Snapshot } from './snapshot.ts'

/** Option of the price of a request in a batch; a model whose prices have no such multiplier is priced as outside of batches. */
export const BATCH_PRICE = 'batch=true'

/** The requests of a batch, after each was judged as a call. */
export interface BatchRequests {
  readonly count: number
  /** Digest of all of them as the provider gets them, lower-case hex. */
  readonly sha256: string
  /** The one model of all of them, as its endpoint and prices name it. */
  readonly model: string
  readonly priced: { readonly key: string; readonly scopes: readonly string[] }
  /** Options of all of them that change the price. */
  readonly options: readonly string[]
  /** The most that all of them can use. */
  readonly holds: readonly HoldItem[]
  /** Taint labels of the results. */
  readonly labels: readonly string[]
  readonly dataClass: Target['dataClass']
  readonly jurisdiction: string | null
  /** The account of the provider that executes them. */
  readonly account: string
  /** The configuration and policies by which they were judged. */
  readonly snapshot: Snapshot
}

/** A batch in the records of the call that created it. */
export interface BatchUse {
  readonly id: string
  readonly requests: number
  readonly sha256: string
}

const HOLD_PREFIX = 'batch/'

/** Returns the id of the hold of a batch, which outlives the call that created it. */
export function holdOfBatch(account: string, id: string): string {
  return `${HOLD_PREFIX}${account}/${id}`
}

/** Returns whether a hold with this id is of a batch. */
export function isHoldOfBatch(id: string): boolean {
  return id.startsWith(HOLD_PREFIX)
}
