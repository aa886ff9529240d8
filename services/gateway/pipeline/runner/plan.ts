import {
  type Call,
  type Decision,
  type Denial,
  type Fact,
  type Facts,
  type Operation,
  type Outcome,
  unresolved,
} from '../../call/index.ts'
import { everywhere, type Matrix, type Row, requestOrder } from '../matrix.ts'
import type { AnyReview, AnyStage, RunningReview, StepName } from '../stage.ts'

/**
 * A stage as the runner sees it: with all facts. What a stage may read was checked where `stages([...])` listed it, so
 * here its parameter is widened; method parameters are bivariant, which makes this the one unchecked step of the pipeline.
 */
export interface Runnable {
  readonly name: StepName
  readonly gives: readonly Fact[]
  admit(call: Call<Fact>): unknown
  settle?(call: Call<Fact>, outcome: Outcome): void | Promise<void>
  still?(call: Call<Fact>): Denial | null
}

/** A review as the runner sees it, widened like `Runnable`. */
export interface ReviewFactory {
  readonly name: StepName
  open(call: Call<Fact>): RunningReview | null
}

/** One row of the matrix with the stages that are composed: worked out once, read by every call. */
export interface Plan {
  readonly row: Row
  readonly stages: readonly Runnable[]
  readonly reviews: readonly ReviewFactory[]
  /** What the facts are before any stage has given one, and stay where the row leaves the stage out. */
  readonly initial: Omit<Facts, 'identity'>
}

/** What stands in the record of a call whose row asks no policy: the scope of the token let it through. */
const scopeOnly: Decision = {
  action: 'allow',
  policy: null,
  rule: null,
  reason: 'scope',
  revision: '',
  engines: [],
  wouldBe: [],
  rates: [],
}

const initialFacts: Omit<Facts, 'identity'> = {
  target: unresolved,
  pin: null,
  taints: { labels: [] },
  decision: scopeOnly,
  redacted: null,
  approval: null,
  hold: null,
}

/** Stands in for the row of an operation that has none: nothing runs, and the call is refused. */
export const unknownOperation: Plan = {
  row: {
    covers: '',
    built: false,
    stages: [],
    filters: [],
    reviews: [],
    record: 'full',
    long: false,
    parent: false,
    reply: 'frames',
    note: '',
  },
  stages: [],
  reviews: [],
  initial: initialFacts,
}

/** One plan an operation. Throws at start-up when the stages are out of order, or one that every call needs is missing. */
export function planRows(
  matrix: Matrix,
  stages: readonly AnyStage[],
  reviews: readonly AnyReview[],
): ReadonlyMap<Operation, Plan> {
  checkOrder(stages)
  const plans = new Map<Operation, Plan>()
  for (const operation of operationsOf(matrix)) {
    const row = matrix[operation]
    if (row !== undefined) plans.set(operation, planRow(row, stages, reviews))
  }
  return plans
}

function planRow(row: Row, stages: readonly AnyStage[], reviews: readonly AnyReview[]): Plan {
  const running: Runnable[] = []
  const initial = { ...initialFacts }
  for (const stage of stages) {
    if (everywhere.has(stage.name) || row.stages.includes(stage.name)) running.push(stage)
    else Object.assign(initial, stage.skipped)
  }
  const openers = row.reviews.flatMap((name): readonly ReviewFactory[] =>
    reviews.filter((review) => review.name === name),
  )
  return { row, stages: running, reviews: openers, initial }
}

function checkOrder(stages: readonly AnyStage[]): void {
  const order: readonly StepName[] = requestOrder
  let last = -1
  for (const { name } of stages) {
    const place = order.indexOf(name)
    if (place < 0) throw new Error(`stages: ${name} judges no request`)
    if (place <= last) throw new Error(`stages: ${name} must stand once, in the order ${order.join(', ')}`)
    last = place
  }
  for (const name of everywhere) {
    if (!stages.some((stage) => stage.name === name)) throw new Error(`stages: ${name} is missing`)
  }
}

function operationsOf(matrix: Matrix): readonly Operation[] {
  // The keys of a matrix are operations by its type; a name outside the set could never be asked for.
  return Object.keys(matrix).filter((name): name is Operation => name in matrix)
}
