/** Types of `/v1/policies/simulate` for its clients. The CLI imports only this file. */

type Action = 'allow' | 'deny' | 'require_approval'

/** `needs_arguments`: the candidate depends on arguments, of which the ledger has only a hash. */
export type Comparison = 'same' | 'changed' | 'needs_arguments'

/** One recorded call, evaluated again. */
export interface SimulatedCall {
  /** Number of its last record. */
  readonly seq: number
  /** RFC 3339. */
  readonly at: string
  readonly call: string
  readonly namespace: string
  readonly agent: string
  readonly session: string
  /** Operation, such as `mcp.call`. */
  readonly op: string
  readonly server: string
  readonly tool: string | null
  readonly verdict: Comparison
  /** Recorded decision. */
  readonly was: { readonly action: Action; readonly policy: string | null; readonly rule: string | null }
  /** Decision of the candidate; null if it depends on the arguments. */
  readonly would: {
    readonly action: Action
    readonly policy: string | null
    readonly rule: string | null
    readonly reason: string
  } | null
  /** Possible verdicts for any arguments. */
  readonly possible: readonly Action[]
  /** Evaluated with captured arguments, which are redacted. */
  readonly captured: boolean
}

export interface Simulation {
  /** Calls of this page by comparison; `skipped`: not evaluated by a policy. */
  readonly counts: Readonly<Record<Comparison | 'skipped', number>>
  readonly items: readonly SimulatedCall[]
  /** The last record that was read; null: none. */
  readonly through: { readonly seq: number; readonly at: string } | null
  /** Of the first page: records of the whole range whose segments left the disk, so that their calls are not evaluated. */
  readonly left: readonly { readonly first: number; readonly last: number }[]
  /** `cursor` of the next page; null at the end. */
  readonly nextCursor: string | null
}

/** Returns whether a value is a response of `POST /v1/policies/simulate`. */
export function isSimulation(value: unknown): value is Simulation {
  if (typeof value !== 'object' || value === null) return false
  const hasLists = 'items' in value && Array.isArray(value.items) && 'left' in value && Array.isArray(value.left)
  return hasLists && 'counts' in value && 'nextCursor' in value
}
