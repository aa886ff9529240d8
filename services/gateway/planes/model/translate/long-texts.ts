import type { Steps } from '@plat/core'

/** Shorter texts are quoted at once: `JSON.stringify` escapes this many characters in less than 1 ms. */
const LONG_CHARS = 64 * 1024
/** An escaped letter, which `JSON.stringify` never writes: quoted texts of a provider do not contain this placeholder. */
const PLACEHOLDER = '"\\u0061"'

type Late = { readonly text: string } | { readonly items: readonly unknown[] }

/**
 * Long strings and lists in objects that are written by `JSON.stringify`: it would hold the event loop for 40 ms to quote 4 MiB of which each
 * character is escaped. They are written as placeholders, which `write` replaces in steps.
 */
export class LongTexts {
  /** Values of the placeholders that were written since the last `write`, in order. */
  #late: Late[] = []

  /** A value that is written as the text. */
  of(text: string): unknown {
    return text.length < LONG_CHARS ? text : this.#placeholder({ text })
  }

  /** A value that is written as the list. */
  list(items: readonly unknown[]): unknown {
    return this.#placeholder({ items })
  }

  /** Returns the JSON, which was written since the last call, with its long texts and lists. */
  *write(json: string): Steps<string> {
    if (this.#late.length === 0) return json
    const late = this.#late
    this.#late = []
    const [first = '', ...others] = json.split(PLACEHOLDER)
    const parts = [first]
    for (const [index, rest] of others.entries()) {
      const one = late[index] ?? { items: [] }
      parts.push('text' in one ? yield* quoted(one.text) : yield* this.#listed(one.items), rest)
    }
    return parts.join('')
  }

  #placeholder(late: Late): unknown {
    return {
      toJSON: () => {
        this.#late.push(late)
        return JSON.rawJSON(PLACEHOLDER)
      },
    }
  }

  *#listed(items: readonly unknown[]): Steps<string> {
    const parts: string[] = []
    for (const item of items) {
      parts.push(yield* this.write(JSON.stringify(item)))
      yield
    }
    return `[${parts.join()}]`
  }
}

/** Returns the text as JSON, in steps. A pair of surrogates is not divided: each half would be escaped. */
function* quoted(text: string): Steps<string> {
  const parts: string[] = []
  for (let at = 0; at < text.length; ) {
    const end = at + LONG_CHARS
    const next = isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end
    parts.push(JSON.stringify(text.slice(at, next)).slice(1, -1))
    at = next
    yield
  }
  return `"${parts.join('')}"`
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}
