/** Attributes of a span or resource, by names of the conventions. Undefined ones are omitted. */
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>

/** Span kinds of OTLP. */
export const SERVER = 2
export const CLIENT = 3

/** A complete span. Times are milliseconds since the epoch. */
export interface Span {
  readonly name: string
  readonly kind: typeof SERVER | typeof CLIENT
  readonly traceId: string
  readonly spanId: string
  /** Null for the first span of a trace. */
  readonly parentSpanId: string | null
  readonly traceState: string
  readonly startedAt: number
  readonly endedAt: number
  readonly attributes: Attributes
  /** Number of attributes dropped because of their size. */
  readonly dropped: number
  readonly events: readonly { readonly name: string; readonly at: number; readonly attributes: Attributes }[]
  readonly links: readonly { readonly traceId: string; readonly spanId: string; readonly state: string }[]
  /** Short error description, or null. */
  readonly error: string | null
}
