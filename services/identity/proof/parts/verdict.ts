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

/** Tells the two answers that end a check from whatever a step of it answers. */
export function isStop(value: object): value is ProofFailure | Unreachable {
  return 'kind' in value && (value.kind === 'failed' || value.kind === 'unreachable')
}
