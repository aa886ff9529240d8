/** Shapes of `/v1/policies/simulate`, for whoever asks over HTTP: the command line imports only this file. */

type Action = 'allow' | 'deny' | 'require_approval'

/** `needs_arguments`: the candidate asks for arguments, of which the ledger holds a hash alone. */
export type Comparison = 'same' | 'changed' | 'needs_arguments'

/** One recorded call, judged again. */
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
  /** What the policies of then said. */
  readonly was: { readonly action: Action; readonly policy: string | null; readonly rule: string | null }
  /** What the candidate says; null where that depends on the arguments. */
  readonly would: {
    readonly action: Action
    readonly policy: string | null
    readonly rule: string | null
    readonly reason: string
  } | null
  /** Every verdict that some arguments would bring about. */
  readonly possible: readonly Action[]
  /** It was judged with the arguments as they were captured: redacted. */
  readonly captured: boolean
}

/** One page of a simulation. */
export interface Simulation {
  /** Calls of this page by how they compare; `skipped`: no policy had judged them. */
  readonly counts: Readonly<Record<Comparison | 'skipped', number>>
  readonly items: readonly SimulatedCall[]
  /** The last record that was looked at; null: there was none. */
  readonly through: { readonly seq: number; readonly at: string } | null
  /** Asks for the next page as `cursor`; null at the end. */
  readonly nextCursor: string | null
}

/** Is this an answer of `POST /v1/policies/simulate`? */
export function isSimulation(value: unknown): value is Simulation {
  if (typeof value !== 'object' || value === null) return false
  return 'counts' in value && 'items' in value && Array.isArray(value.items) && 'nextCursor' in value
}
