/** What a label may say: a closed set, or names from outside of which only so many are kept apart. */
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

/** What every value outside a closed set, or beyond a cap, is counted as. */
export const OTHER = '_OTHER'

/** Names from resources are kept apart up to this many per label. */
export const NAMES: LabelValues = { cap: 1000 }

/** Series of one metric beyond this many are counted together: labels multiply. */
export const MAX_SERIES = 10_000
