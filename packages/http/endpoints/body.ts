import { isObject, type JsonObject, parseStrict } from '@plat/core'
import { RefusalError } from './refusal.ts'

/** JsonObject of a request's JSON object. A present member must be valid; only absence means unset. */
export class Body {
  readonly #members: JsonObject
  /** Prefix of member names in messages, such as `proof.`. */
  readonly #prefix: string

  private constructor(members: JsonObject, known: ReadonlySet<string>, prefix: string) {
    this.#members = members
    this.#prefix = prefix
    for (const name of Object.keys(members)) {
      if (!known.has(name)) throw new RefusalError(400, `invalid JSON: unknown field ${JSON.stringify(prefix + name)}`)
    }
  }

  /** Parses strict JSON (no duplicates, no trailing data) without members outside `known`. Throws RefusalError. */
  static parse(bytes: Uint8Array, known: ReadonlySet<string>): Body {
    return new Body(parseObject(bytes), known, '')
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#members, name)
  }

  value(name: string): unknown {
    return this.has(name) ? this.#members[name] : undefined
  }

  /** Returns a string, or null when the member is absent. */
  text(name: string): string | null {
    const value = this.value(name)
    if (value === undefined) return null
    if (typeof value !== 'string') throw this.#invalid(name, 'must be a string')
    if (!value.isWellFormed()) throw this.#invalid(name, 'is not well-formed Unicode')
    return value
  }

  /** Returns a list of strings, empty when the member is absent. */
  texts(name: string): readonly string[] {
    const value = this.value(name)
    if (value === undefined) return []
    if (!Array.isArray(value) || !value.every((entry) => typeof entry === 'string')) {
      throw this.#invalid(name, 'must be a list of strings')
    }
    return value
  }

  /** Returns an object without members outside `known`, or null when the member is absent. */
  object(name: string, known: ReadonlySet<string>): Body | null {
    const value = this.value(name)
    if (value === undefined) return null
    if (!isObject(value)) throw this.#invalid(name, 'must be an object')
    return new Body(value, known, `${this.#prefix}${name}.`)
  }

  #invalid(name: string, why: string): RefusalError {
    return new RefusalError(400, `invalid JSON: ${this.#prefix}${name} ${why}`)
  }
}

/** Parses a strict JSON object. Throws RefusalError naming the problem. */
function parseObject(bytes: Uint8Array): JsonObject {
  let value: unknown
  try {
    value = parseStrict(bytes)
  } catch (error) {
    throw new RefusalError(400, `invalid JSON: ${error instanceof Error ? error.message : 'unreadable'}`)
  }
  if (!isObject(value)) throw new RefusalError(400, 'invalid JSON: the body must be an object')
  return value
}
