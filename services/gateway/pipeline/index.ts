export { createLiveCalls, type LiveCall, type LiveCalls } from './live.ts'
export { type Matrix, matrix, type Row, scopeOnlyModels } from './matrix.ts'
export { createRunnerMetrics, type RunnerLog, type RunnerMetrics } from './metrics.ts'
export type { NestedCall, RunNested } from './nested.ts'
export { type Plane, PlaneAround } from './plane.ts'
export { resolveByPlane } from './resolve.ts'
export { GatewayRequest } from './runner/call.ts'
export { CallAbort } from './runner/call-abort.ts'
export type { CallObserver } from './runner/closing.ts'
export type { Sink } from './runner/exchange.ts'
export type { RunnerOptions } from './runner/options.ts'
export { createRunner, type Runner } from './runner/runner.ts'
export {
  type AnyReview,
  type AnyStage,
  admitted,
  type Review,
  type RunningReview,
  review,
  type Stage,
  type StepName,
  stage,
  stages,
  type Verdict,
  type Wait,
} from './stage.ts'
