/** Values of a label: a closed set, or open values with a cap on how many are distinguished. */
export type LabelValues = readonly string[] | { readonly cap: number }

/** One series of the metric table (docs/spec/gateway.md, "Metrics"). */
export interface MetricRow {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  /** In the order of exposition. */
  readonly labels: Readonly<Record<string, LabelValues>>
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
