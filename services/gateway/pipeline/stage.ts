import type { Body, Call, Denial, Ending, Fact, Facts, Frame, FrameRun, FrameVerdict, Outcome } from '../call/index.ts'

/** Every stage and review of the matrix, by the name that metrics, spans and docs use. */
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

/** The verdict of a stage that gives no facts. `undefined`, as from a forgotten return, is not a verdict, and the runner denies the call. */
export const admitted: unique symbol = Symbol('admitted')

/** The call waits for an approval. Once granted, a second pass starts at the first stage. */
export interface Wait {
  readonly kind: 'wait'
  readonly approvalId: string
  readonly until: Promise<'granted' | Denial>
}

/** A body that replaces the request's, with the facts of the stage. */
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
  /** The facts of operations for which this stage does not run. */
  readonly skipped: Readonly<Pick<Facts, G>>
  /** Judges the call. Returns a plain value where possible, which saves an await. */
  admit(call: Call<N>): Verdict<G> | Promise<Verdict<G>>
  /** Called once, in reverse order of admission, if the stage admitted the call; `outcome.result` is `rewound` before a second pass. */
  settle?(call: Call<N | G>, outcome: Outcome): void | Promise<void>
  /** Returns a denial when the conditions under which the stage admitted the call no longer hold. */
  still?(call: Call<N | G>): Denial | null
}

/** Declares a stage; its types are inferred from `needs` and `gives`, so that they cannot differ. */
export const stage = <const Name extends StepName, const N extends Fact = never, const G extends Fact = never>(
  it: Stage<Name, N, G>,
): Stage<Name, N, G> => it

/** A stage with its fact types erased, as an element of a list. */
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

/** Declares an ordered list of stages. A stage that needs a fact that no earlier stage gives does not compile. */
export const stages = <const L extends readonly AnyStage[]>(list: L & OrderedStages<L>): L => list

/** Changes that a reply makes to the taint labels of its session. The record of the call contains both lists. */
export interface Marking {
  /** Labels added. They are durable before the frame that caused them is sent. */
  readonly added: readonly string[]
  readonly cleared: readonly string[]
  /** Called when the response was complete and has been written: clears the labels in `cleared`. */
  sent?(): void | Promise<void>
}

/** State of a review for one reply. */
export interface RunningReview {
  /** Absent: the review does not change taint labels. */
  readonly marking?: Marking
  /** Called before a tunnel opens, because the bytes of a tunnel are not reviewed. A denial prevents it. */
  beforeTunnel?(): null | Denial | Promise<null | Denial>
  frame(frame: Frame): FrameVerdict
  /** Counts a run of frames that passes unchanged. Only for a review that never holds frames back; absent: each frame goes to `frame`. */
  skim?(run: FrameRun): void
  /** Called exactly once. If `how` is `complete`, returns the frames that were held back; otherwise returned frames are not sent. */
  end(how: Ending): FrameVerdict
  tally?(): Pick<Outcome, 'usage' | 'usageSource' | 'costMicros' | 'batch'>
}

/** Checks a response, frame by frame. */
export interface Review<N extends Fact> {
  readonly name: StepName
  readonly needs: readonly N[]
  /** Returns null when this review does not apply to the reply of this call. */
  open(call: Call<N>): RunningReview | null
}

/** A review with its fact types erased, as an element of a list. */
export interface AnyReview {
  readonly name: StepName
  readonly needs: readonly Fact[]
  open(call: never): RunningReview | null
}

/** Declares a review; the types of its facts are inferred from `needs`. */
export const review = <const N extends Fact = never>(it: Review<N>): Review<N> => it
