/** Where a call stands in its trace (W3C Trace Context). Ids are lower-case hex. */
export interface TraceContext {
  /** Undefined: nobody has named a trace, and none begins here. */
  readonly traceId: string | undefined
  /** The span that the records of the call name. */
  readonly spanId: string | undefined
  /** What whoever the call is forwarded to is told; null: what the caller said goes on as it is. */
  readonly traceparent: string | null
  /** The message itself names where it comes from, which counts more than what its headers say. */
  adopt(traceparent: string, tracestate: string): void
}
