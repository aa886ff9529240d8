/** JSON text that `JSON.stringify` writes verbatim: result of `JSON.rawJSON`. */
export interface RawJson {
  readonly rawJSON: string
}

// The runtime has source text access (ECMAScript 2026); the checker's library does not declare it yet.
declare global {
  interface JSON {
    parse(
      text: string,
      reviver: (name: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown
    rawJSON(text: string): RawJson
    isRawJSON(value: unknown): value is RawJson
  }
}
