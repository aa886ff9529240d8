import type { Body, Call, Denial, Ending, Fact, Facts, Frame, FrameRun, FrameVerdict, Outcome } from '../call/index.ts'

/** Every stage and review that the matrix knows, in words that metrics, spans and docs share. */
export type StepName =
  | 'revoked'
  | 'resolve'
  | 'pins'
  | 'taints'
  | 'policy'
  | 'offline'
  | 'redact'
  | 'guard'
  | 'approval'
  | 'reserve'
  | 'fresh'
  | 'bind'
  | 'mark'
  | 'meter'

/** The verdict of a stage that gives no facts. A forgotten return is no verdict, and no verdict is a denial. */
export const admitted: unique symbol = Symbol('admitted')

/** The call waits for a person; granted, it starts a second pass at the first stage. */
export interface Wait {
  readonly kind: 'wait'
  readonly approvalId: string
  readonly until: Promise<'granted' | Denial>
}

/** The body that goes on instead, with the facts of the stage. */
export interface Replace<G extends Fact> {
  readonly kind: 'replace'
  readonly body: Body
  readonly facts: Readonly<Pick<Facts, G>>
}

export type Verdict<G extends Fact> =
  | ([G] extends [never] ? typeof admitted : Readonly<Pick<Facts, G>>)
  | Denial
  | Wait
  | Replace<G>

export interface Stage<Name extends StepName, N extends Fact, G extends Fact> {
  readonly name: Name
  readonly needs: readonly N[]
  readonly gives: readonly G[]
  /** The facts where a row of the matrix leaves this stage out. */
  readonly skipped: Readonly<Pick<Facts, G>>
  /** A plain value costs no await. */
  admit(call: Call<N>): Verdict<G> | Promise<Verdict<G>>
  /** Once, in reverse order, only if it admitted; with result `rewound` before a second pass. */
  settle?(call: Call<N | G>, outcome: Outcome): void | Promise<void>
  /** Synchronous: does what I admitted still hold? */
  still?(call: Call<N | G>): Denial | null
}

/** Infers the types from the two lists, so that they cannot differ. */
export const stage = <const Name extends StepName, const N extends Fact = never, const G extends Fact = never>(
  it: Stage<Name, N, G>,
): Stage<Name, N, G> => it

/** A stage whose facts are erased: what a list holds. */
export interface AnyStage {
  readonly name: StepName
  readonly needs: readonly Fact[]
  readonly gives: readonly Fact[]
  readonly skipped: Readonly<Partial<Facts>>
  admit(call: never): unknown
  settle?(call: never, outcome: Outcome): void | Promise<void>
  still?(call: never): Denial | null
}

type OrderedStages<L extends readonly AnyStage[], Got extends Fact = 'identity'> = L extends readonly [
  infer S extends AnyStage,
  ...infer Rest extends readonly AnyStage[],
]
  ? [S['needs'][number]] extends [Got]
    ? OrderedStages<Rest, Got | S['gives'][number]>
    : { readonly 'needs a fact that no earlier stage gives': readonly [S['name'], Exclude<S['needs'][number], Got>] }
  : unknown

/** An ordered list of stages; a stage that needs a fact which no earlier stage gives does not compile. */
export const stages = <const L extends readonly AnyStage[]>(list: L & OrderedStages<L>): L => list

/** What a reply does to the taint labels of its session. The record of the call tells both lists. */
export interface Marking {
  /** Durable before the frame left that brought them. */
  readonly added: readonly string[]
  readonly cleared: readonly string[]
  /** The answer was complete and has been written: now clears what it clears. */
  sent?(): void | Promise<void>
}

/** What a review keeps while one reply passes. */
export interface RunningReview {
  /** Absent: the review has nothing to do with taint labels. */
  readonly marking?: Marking
  /** Called before a tunnel opens, whose bytes pass no review. */
  beforeTunnel?(): null | Denial | Promise<null | Denial>
  frame(frame: Frame): FrameVerdict
  /** Takes note of a run that passes as it is. Only for a review that holds nothing back; without it every frame comes alone. */
  skim?(run: FrameRun): void
  /** Exactly once. At `complete` it hands out what it held back; otherwise its frames are not sent. */
  end(how: Ending): FrameVerdict
  tally?(): Pick<Outcome, 'usage' | 'usageSource' | 'costMicros'>
}

/** Looks at what comes back, frame by frame. */
export interface Review<N extends Fact> {
  readonly name: StepName
  readonly needs: readonly N[]
  /** Null: the reply of this call is not for this review. */
  open(call: Call<N>): RunningReview | null
}

/** A review whose facts are erased: what a list holds. */
export interface AnyReview {
  readonly name: StepName
  readonly needs: readonly Fact[]
  open(call: never): RunningReview | null
}

export const review = <const N extends Fact = never>(it: Review<N>): Review<N> => it
