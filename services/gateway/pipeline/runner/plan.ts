import {
  type Call,
  type Denial,
  type Fact,
  type Facts,
  type Operation,
  type Outcome,
  scopeDecision,
  unresolved,
} from '../../call/index.ts'
import { emptyRow, everywhere, type Matrix, type Row, requestOrder } from '../matrix.ts'
import type { AnyReview, AnyStage, RunningReview, StepName } from '../stage.ts'

/**
 * A stage as the runner sees it, with all facts. The compiler checked which facts a stage reads where `stages([...])` lists it, so
 * its parameter is widened here. Method parameters are bivariant, so this is the one unchecked conversion of the pipeline.
 */
export interface Runnable {
  readonly name: StepName
  readonly gives: readonly Fact[]
  admit(call: Call<Fact>): unknown
  settle?(call: Call<Fact>, outcome: Outcome): void | Promise<void>
  still?(call: Call<Fact>): Denial | null
}

/** A review with its parameter widened like that of `Runnable`. */
export interface ReviewFactory {
  readonly name: StepName
  open(call: Call<Fact>): RunningReview | null
}

/** A row of the matrix with its stages and reviews. Built once per operation at start-up. */
export interface Plan {
  readonly row: Row
  readonly stages: readonly Runnable[]
  readonly reviews: readonly ReviewFactory[]
  /** The initial facts. Those of stages that do not run for the operation keep these values. */
  readonly initial: Omit<Facts, 'identity'>
}

const initialFacts: Omit<Facts, 'identity'> = {
  target: unresolved,
  pin: null,
  taints: { labels: [] },
  decision: scopeDecision,
  redacted: null,
  approval: null,
  hold: null,
}

/** The plan of an operation without a row: no stage runs, and the call is refused. */
export const unknownOperation: Plan = {
  row: { covers: '', ...emptyRow },
  stages: [],
  reviews: [],
  initial: initialFacts,
}

/** Returns a plan for each operation. Throws if the stages are out of order, or one that runs for every operation is missing. */
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
    if (place < 0) throw new Error(`stages: ${name} is not a request-side stage`)
    if (place <= last) throw new Error(`stages: ${name} must be listed once, in the order ${order.join(', ')}`)
    last = place
  }
  for (const name of everywhere) {
    if (!stages.some((stage) => stage.name === name)) throw new Error(`stages: ${name} is missing`)
  }
}

function operationsOf(matrix: Matrix): readonly Operation[] {
  // The type of a matrix permits only operations as keys. A plan for any other name would never be used.
  return Object.keys(matrix).filter((name): name is Operation => name in matrix)
}
