/** What a span or a resource says of itself, by names of the conventions. Undefined: it does not say. */
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>

/** Kinds of spans as OTLP numbers them. */
export const SERVER = 2
export const CLIENT = 3

/** One span, whole. Times are milliseconds since the epoch. */
export interface Span {
  readonly name: string
  readonly kind: typeof SERVER | typeof CLIENT
  readonly traceId: string
  readonly spanId: string
  /** Null: the trace begins with it. */
  readonly parentSpanId: string | null
  readonly traceState: string
  readonly startedAt: number
  readonly endedAt: number
  readonly attributes: Attributes
  /** Attributes that were too large. */
  readonly dropped: number
  readonly events: readonly { readonly name: string; readonly at: number; readonly attributes: Attributes }[]
  readonly links: readonly { readonly traceId: string; readonly spanId: string; readonly state: string }[]
  /** What went wrong, in a few words; null: nothing. */
  readonly error: string | null
}
