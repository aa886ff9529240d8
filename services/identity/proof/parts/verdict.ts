import type { Established, ProofFailure, Substrate, Unreachable } from '../check.ts'

export function established(substrate: Substrate): Established {
  return { kind: 'established', substrate }
}

/** `reason` is one line for the caller and never quotes the proof. */
export function failed(reason: string): ProofFailure {
  return { kind: 'failed', reason }
}

export function unreachable(reason: string): Unreachable {
  return { kind: 'unreachable', reason }
}

/** Distinguishes the two results that end a check from those of its steps. */
export function isStop(value: object): value is ProofFailure | Unreachable {
  return 'kind' in value && (value.kind === 'failed' || value.kind === 'unreachable')
}
