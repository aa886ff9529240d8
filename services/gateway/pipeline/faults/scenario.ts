import type { StepName } from '../stage.ts'

// Faults of a fake stage, review or plane, and when they occur. Everything else works.

export const stageNames = [
  'revoked',
  'resolve',
  'pins',
  'taints',
  'policy',
  'redact',
  'guard',
  'approval',
  'reserve',
] as const satisfies readonly StepName[]
export const reviewNames = ['redact', 'guard', 'mark', 'meter'] as const satisfies readonly StepName[]

/** `late` admits ten seconds after its deadline; in the two after it, the stage never returns while the caller leaves or is revoked. */
export const stageFaults = [
  'throws',
  'rejects',
  'undefined',
  'null',
  'wrong type',
  'missing fact',
  'denial',
  'async denial',
  'never',
  'late',
  'never, and the caller leaves',
  'never, and the caller is revoked',
  'no longer holds',
  'throws when rechecked',
] as const
export const reviewFaults = ['throws', 'rejects', 'undefined', 'wrong type', 'denial', 'never'] as const
export const settleFaults = ['throws', 'rejects', 'never'] as const
export const planeFaults = [
  'forward throws',
  'forward rejects',
  'forward undefined',
  'forward denies',
  'forward returns upstream error',
  'forward never, and the caller leaves',
  'forward returns the wrong kind',
  'refuse throws',
  'abort throws',
] as const
export const ledgerFaults = ['intent fails', 'everything fails', 'intent never, and the caller leaves'] as const

/** `held`: a plain response after an approval. `hour`: an event every ten minutes for an hour. */
export const shapes = ['one', 'many', 'requests', 'tunnel', 'held', 'hour'] as const
/** Occurs after the first frame, or while an approval is pending. */
export const endings = ['ends', 'dies', 'client leaves', 'cut', 'held, then released', 'held, then revoked'] as const

export type StageName = (typeof stageNames)[number]
export type StageFault = (typeof stageFaults)[number]
export type ReviewFault = (typeof reviewFaults)[number]
export type Shape = (typeof shapes)[number]
export type End = (typeof endings)[number]

export interface Scenario {
  readonly shape: Shape
  readonly ending: End
  readonly audit: 'open' | 'closed'
  readonly stage?: { readonly name: StageName; readonly fault: StageFault }
  readonly review?: {
    readonly name: (typeof reviewNames)[number]
    readonly fault: ReviewFault
    readonly at: 'open' | 'frame' | 'end'
  }
  readonly settle?: { readonly name: StageName; readonly fault: (typeof settleFaults)[number] }
  readonly plane?: (typeof planeFaults)[number]
  readonly ledger?: (typeof ledgerFaults)[number]
}

/** Every fault in every shape with every ending, one fault at a time. */
export function* scenarios(): Generator<Scenario> {
  for (const shape of shapes) {
    for (const ending of endings) {
      for (const audit of ['open', 'closed'] as const) {
        const base = { shape, ending, audit }
        yield base
        for (const name of stageNames) for (const fault of stageFaults) yield { ...base, stage: { name, fault } }
        for (const name of stageNames) for (const fault of settleFaults) yield { ...base, settle: { name, fault } }
        for (const plane of planeFaults) yield { ...base, plane }
        for (const ledger of ledgerFaults) yield { ...base, ledger }
        yield* withReviews(base)
      }
    }
  }
}

function* withReviews(base: Scenario): Generator<Scenario> {
  for (const name of reviewNames) {
    yield { ...base, review: { name, fault: 'throws', at: 'open' } }
    for (const fault of reviewFaults) {
      yield { ...base, review: { name, fault, at: 'frame' } }
      yield { ...base, review: { name, fault, at: 'end' } }
    }
  }
}

export const isHeld = ({ shape, ending }: Scenario) => shape === 'held' || ending.startsWith('held')
