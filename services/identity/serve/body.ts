import { parseStrict } from '@plat/core'
import { isObject } from '@plat/tokens'
import { Refusal } from './endpoint.ts'

/** The members of a request's JSON object. A member that is there must be valid; absent is the only way to say nothing. */
export class Body {
  readonly #members: Readonly<Record<string, unknown>>

  /** Strict JSON (decisions of the contract: no duplicates, no trailing data) without members that are not in `known`. */
  constructor(bytes: Uint8Array, known: ReadonlySet<string>) {
    this.#members = parseObject(bytes)
    for (const name of Object.keys(this.#members)) {
      if (!known.has(name)) throw new Refusal(400, `invalid JSON: unknown field ${JSON.stringify(name)}`)
    }
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#members, name)
  }

  value(name: string): unknown {
    return this.has(name) ? this.#members[name] : undefined
  }

  /** A string; null when the member is absent. */
  text(name: string): string | null {
    const value = this.value(name)
    if (value === undefined) return null
    if (typeof value !== 'string') throw new Refusal(400, `invalid JSON: ${name} must be a string`)
    if (!value.isWellFormed()) throw new Refusal(400, `invalid JSON: ${name} is not well-formed Unicode`)
    return value
  }

  /** A list of strings; empty when the member is absent. */
  texts(name: string): readonly string[] {
    const value = this.value(name)
    if (value === undefined) return []
    if (!Array.isArray(value) || !value.every((entry) => typeof entry === 'string')) {
      throw new Refusal(400, `invalid JSON: ${name} must be a list of strings`)
    }
    return value
  }
}

function parseObject(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = parseStrict(bytes)
  } catch (error) {
    throw new Refusal(400, `invalid JSON: ${error instanceof Error ? error.message : 'unreadable'}`)
  }
  if (!isObject(value)) throw new Refusal(400, 'invalid JSON: the body must be an object')
  return value
}
