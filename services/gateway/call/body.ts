/** A request body whose bytes passed the strict scanner. Unchanged bytes are forwarded as they came. */
export interface Body {
  readonly bytes: Uint8Array
  /** Parsed on first use, `JSON.parse` semantics: for looking, not for writing back. */
  readonly value: unknown
  /** The bytes of the arguments (`params.arguments`; elsewhere the whole body) as received; null when there are none. */
  readonly args: Uint8Array | null
  /** `args` as they stand in `value`; absent or undefined: they must be parsed. */
  readonly argsValue?: unknown
  /** Output tokens that the gateway cut the request down to; absent or null: it did not. */
  readonly maxTokens?: number | null
}
