import { nameOf, skipSpace, skipValue } from '@plat/core'

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Scalars other than strings by their first byte; everything else is a number. */
const WORDS: ReadonlyMap<number, string> = new Map(
  Object.entries({ t: '<boolean>', f: '<boolean>', n: 'null' }).map(([letter, text]) => [letter.charCodeAt(0), text]),
)

/** Names of this form are presented. Any other member name may be data and is presented by its size. */
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/

/**
 * Returns the shape of a JSON value: member names, types and sizes, but no values. Reads the value no further than until the text exceeds
 * `maxBytes`. The input must have passed `checkJson`.
 */
export function shapeOf(json: Uint8Array, maxBytes: number): string {
  const shape = new Shape(json, maxBytes)
  shape.value(skipSpace(json, 0))
  return shape.text
}

class Shape {
  text = ''
  readonly #json: Uint8Array
  readonly #maxBytes: number

  constructor(json: Uint8Array, maxBytes: number) {
    this.#json = json
    this.#maxBytes = maxBytes
  }

  /** Adds the value at `at`; returns where it ends, unless the text is full. */
  value(at: number): number {
    const first = this.#json[at] ?? 0
    if (first === OPEN_ARRAY) return this.#list(at)
    if (first === OPEN_OBJECT) return this.#members(at)
    const end = skipValue(this.#json, at)
    this.text += first === QUOTE ? `<string, ${this.#size(at, end)} bytes>` : (WORDS.get(first) ?? '<number>')
    return end
  }

  get #isFull(): boolean {
    return this.text.length > this.#maxBytes
  }

  #list(at: number): number {
    this.text += '['
    let next = skipSpace(this.#json, at + 1)
    while (this.#json[next] !== CLOSE_ARRAY && !this.#isFull) next = this.#behindComma(this.value(next))
    this.text += ']'
    return next + 1
  }

  #members(at: number): number {
    this.text += '{'
    let next = skipSpace(this.#json, at + 1)
    while (this.#json[next] !== CLOSE_OBJECT && !this.#isFull) {
      const end = skipValue(this.#json, next)
      this.text += `${this.#name(next, end)}: `
      const colon = skipSpace(this.#json, end)
      next = this.#behindComma(this.value(skipSpace(this.#json, colon + 1)))
    }
    this.text += '}'
    return next + 1
  }

  /** Where the next element or member begins, or the end of the container that has no more of them. */
  #behindComma(end: number): number {
    const after = skipSpace(this.#json, end)
    if (this.#json[after] !== COMMA) return after
    this.text += ', '
    return skipSpace(this.#json, after + 1)
  }

  #name(start: number, end: number): string {
    const name = nameOf(this.#json, start + 1, end - 1)
    return PLAIN_NAME.test(name) ? name : `<name, ${Buffer.byteLength(name)} bytes>`
  }

  /** Size of a string without its quotes and escapes, in bytes of UTF-8. */
  #size(start: number, end: number): number {
    return Buffer.byteLength(nameOf(this.#json, start + 1, end - 1))
  }
}
