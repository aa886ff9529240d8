/** Values of a label: a closed set, or open values with a cap on how many are distinguished. */
export type LabelValues = readonly string[] | { readonly cap: number }

/** Labels of a metric, in the order of exposition. */
export type MetricLabels = Readonly<Record<string, LabelValues>>

/** One series of the metric table (docs/spec/gateway.md, "Metrics"). */
export interface MetricRow {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  readonly labels: MetricLabels
  /** Upper bounds of a histogram, ascending, in the unit of the name; `+Inf` is added. */
  readonly buckets?: readonly number[]
  /** Heading of the contract's table. */
  readonly area: string
  /** The series exists only when this feature is configured; empty for always. */
  readonly feature: string
  /** One sentence without a full stop at its end. */
  readonly help: string
}

/** Label value for everything outside a closed set, or beyond a cap. */
export const OTHER = '_OTHER'

/** Names of resources are distinguished up to this many per label. */
export const NAMES: LabelValues = { cap: 1000 }

/** Maximum number of series of one metric; further ones are counted together, because labels multiply. */
export const MAX_SERIES = 10_000

type NoLabels = Readonly<Record<never, LabelValues>>

/** A row without its name and its place in the table. */
interface MetricShape<T extends MetricRow['type'], L extends MetricLabels> {
  readonly type: T
  readonly labels: L
  readonly help: string
  readonly buckets?: readonly number[]
}

function shapesOf<const T extends MetricRow['type']>(type: T) {
  function shape(help: string): MetricShape<T, NoLabels>
  function shape<const L extends MetricLabels>(help: string, labels: L): MetricShape<T, L>
  function shape(help: string, labels: MetricLabels = {}): MetricShape<T, MetricLabels> {
    return { type, labels, help }
  }
  return shape
}

export const counter = shapesOf('counter')
export const gauge = shapesOf('gauge')
export const summary = shapesOf('summary')

/** `buckets`: upper bounds, ascending, in the unit of the name. */
export function histogram<const L extends MetricLabels>(help: string, labels: L, buckets: readonly number[]) {
  return { type: 'histogram', labels, help, buckets } as const
}

type MetricShapes = Readonly<Record<string, MetricShape<MetricRow['type'], MetricLabels>>>
type RowsOf<M extends MetricShapes> = {
  [N in keyof M & string]: { readonly name: N } & M[N] & Pick<MetricRow, 'area' | 'feature'>
}[keyof M & string]

/** Returns rows for a metric table: metrics by name, all of one area and feature. */
export function metricRows<const M extends MetricShapes>(
  at: Pick<MetricRow, 'area' | 'feature'>,
  metrics: M,
): readonly RowsOf<M>[]
export function metricRows(at: Pick<MetricRow, 'area' | 'feature'>, metrics: MetricShapes): readonly MetricRow[] {
  return Object.entries(metrics).map(([name, shape]) => ({ ...at, name, ...shape }))
}
