import { countValues, JsonError, parseStrict, parseStrictLossless } from '@plat/core'

/** Most bytes of all parsed texts of one message together. */
const MAX_NESTED_BYTES = 2 * 1024 * 1024

/**
 * Most values and member names in all parsed texts of one message together; a text counts as one more. They are parsed at once, after a message
 * that may have 100,000 members outside of them.
 */
const MAX_NESTED_VALUES = 30_000

/** Parses texts within one message, such as the arguments of its calls, within limits for all of them together. */
export class NestedJson {
  #bytes = MAX_NESTED_BYTES
  #values = MAX_NESTED_VALUES

  /** Whether a text exceeded the limits: no further text is parsed. */
  get isFull(): boolean {
    return this.#bytes < 0 || this.#values < 0
  }

  /** Returns undefined unless the text is strict JSON within what is left of the limits. */
  parse(text: string): unknown {
    return this.#parsed(text, parseStrict)
  }

  /** Returns the same, with the literals of numbers that a double would change. */
  parseLossless(text: string): unknown {
    return this.#parsed(text, parseStrictLossless)
  }

  #parsed(text: string, parse: (json: Buffer) => unknown): unknown {
    this.#bytes -= Buffer.byteLength(text)
    if (this.isFull) return undefined
    const json = Buffer.from(text)
    this.#values -= 1 + countValues(json, this.#values)
    if (this.isFull) return undefined
    try {
      return parse(json)
    } catch (error) {
      if (error instanceof JsonError) return undefined
      throw error
    }
  }
}
