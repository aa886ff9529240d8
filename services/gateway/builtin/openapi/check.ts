import { isObject } from '@plat/core'

/**
 * Steps of one check, some 15 ms. A schema comes from a document that its author may have made to be slow: branches within branches need exponential
 * time.
 */
const MAX_STEPS = 50_000
/** Schemas within each other, references included. */
const MAX_DEPTH = 256
/** Bytes of a value that are compared with an `enum` or with other elements in one step. */
const BYTES_PER_STEP = 32

/** Why a value does not have the form of a schema: the member, such as `/body/name`, and what it must be. */
export interface SchemaProblem {
  readonly path: string
  readonly message: string
  /** The check was given up before it found a problem. */
  readonly isUnchecked?: true
}

/**
 * Returns the first problem of a value, or null. The schema is JSON Schema 2020-12 as the operator writes it: references lead to `$defs` of the
 * root. Expressions (`pattern`) and formats are left to the API. A value that takes too long to check has a problem.
 */
export function schemaProblem(schema: object, value: unknown): SchemaProblem | null {
  try {
    return new Check(schema).problem(schema, value, '')
  } catch (error) {
    if (error instanceof TooComplexError)
      return { path: '', message: 'too large or too deep to be checked', isUnchecked: true }
    throw error
  }
}

class TooComplexError extends Error {}

type Schema = Readonly<Record<string, unknown>>

/** A number that must keep its text is an object of `JSON.rawJSON`. */
export function numberOf(value: unknown): number | null {
  if (typeof value === 'number') return value
  return JSON.isRawJSON(value) ? Number(value.rawJSON) : null
}

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  string: (value) => typeof value === 'string',
  number: (value) => numberOf(value) !== null,
  integer: (value) => Number.isInteger(numberOf(value)),
  array: (value) => Array.isArray(value),
  object: (value) => isObject(value) && !JSON.isRawJSON(value),
}

class Check {
  readonly #root: object
  #steps = 0
  #depth = 0

  constructor(root: object) {
    this.#root = root
  }

  problem(schema: unknown, value: unknown, path: string): SchemaProblem | null {
    if (schema === false) return { path, message: 'is not allowed' }
    if (!isObject(schema)) return null
    this.#spend(1)
    if (++this.#depth > MAX_DEPTH) throw new TooComplexError()
    const found =
      this.#referenced(schema, value, path) ??
      this.#own(schema, value, path) ??
      this.#combined(schema, value, path) ??
      (Array.isArray(value)
        ? this.#elements(schema, value, path)
        : TYPES.object?.(value) === true && isObject(value)
          ? this.#members(schema, value, path)
          : null)
    this.#depth--
    return found
  }

  #spend(steps: number): void {
    this.#steps += steps
    if (this.#steps > MAX_STEPS) throw new TooComplexError()
  }

  #referenced({ $ref }: Schema, value: unknown, path: string): SchemaProblem | null {
    if (typeof $ref !== 'string') return null
    const definitions: unknown = Reflect.get(this.#root, '$defs')
    const name = $ref.slice('#/$defs/'.length)
    const target = isObject(definitions) && Object.hasOwn(definitions, name) ? definitions[name] : undefined
    return this.problem(target, value, path)
  }

  #own(schema: Schema, value: unknown, path: string): SchemaProblem | null {
    const { type } = schema
    if (type !== undefined) {
      const types = [type].flat().map(String)
      if (!types.some((one) => TYPES[one]?.(value) === true)) return { path, message: `must be ${types.join(' or ')}` }
    }
    if (Array.isArray(schema.enum)) {
      const listed = schema.enum
      const text = this.#textOf(value)
      this.#spend(listed.length)
      if (!listed.some((one) => this.#textOf(one) === text))
        return { path, message: `must be one of ${listing(listed)}` }
    }
    if (schema.const !== undefined && this.#textOf(schema.const) !== this.#textOf(value))
      return { path, message: `must be ${listing([schema.const])}` }
    if (typeof value === 'string') return sized(schema, 'Length', value.length, { path, what: 'characters', value })
    const number = numberOf(value)
    return number === null ? null : bounded(schema, number, path)
  }

  #combined(schema: Schema, value: unknown, path: string): SchemaProblem | null {
    for (const one of listOf(schema.allOf)) {
      const found = this.problem(one, value, path)
      if (found !== null) return found
    }
    if (Array.isArray(schema.anyOf)) {
      const problems = this.#branches(schema.anyOf, value, path, 1)
      if (problems !== null) return problems
    }
    if (Array.isArray(schema.oneOf)) {
      const found = this.#branches(schema.oneOf, value, path, 2)
      if (found !== null) return found
    }
    if (schema.not !== undefined && this.problem(schema.not, value, path) === null)
      return { path, message: 'has a form that is excluded' }
    return null
  }

  /** Null if a branch matches; `most` 2: exactly one. With one branch for the type of the value its problem is named. */
  #branches(branches: readonly unknown[], value: unknown, path: string, most: 1 | 2): SchemaProblem | null {
    let matches = 0
    const problems: SchemaProblem[] = []
    for (const branch of branches) {
      const found = this.problem(branch, value, path)
      if (found !== null) problems.push(found)
      else if (++matches === most) break
    }
    if (matches === 1) return null
    if (matches > 1) return { path, message: 'matches more than one of the forms of which it must have one' }
    const deeper = problems.filter((one) => one.path !== path)
    const [first] = deeper.length > 0 ? deeper : problems
    return problems.length === 1 || deeper.length === 1
      ? (first ?? null)
      : { path, message: `has none of the ${branches.length} allowed forms` }
  }

  #elements(schema: Schema, list: readonly unknown[], path: string): SchemaProblem | null {
    const size = sized(schema, 'Items', list.length, { path, what: 'elements' })
    if (size !== null) return size
    const prefix = listOf(schema.prefixItems)
    for (const [index, element] of list.entries()) {
      const found = this.problem(index < prefix.length ? prefix[index] : schema.items, element, `${path}/${index}`)
      if (found !== null) return found
    }
    if (schema.uniqueItems !== true) return null
    const texts = new Set(list.map((element) => this.#textOf(element)))
    return texts.size === list.length ? null : { path, message: 'must not have an element twice' }
  }

  #members(schema: Schema, value: Schema, path: string): SchemaProblem | null {
    const names = Object.keys(value)
    this.#spend(names.length)
    for (const name of listOf(schema.required))
      if (typeof name === 'string' && !Object.hasOwn(value, name))
        return { path: `${path}/${name}`, message: 'is required' }
    const size = sized(schema, 'Properties', names.length, { path, what: 'members' })
    if (size !== null) return size
    const known = isObject(schema.properties) ? schema.properties : {}
    for (const name of names) {
      const member = Object.hasOwn(known, name) ? known[name] : schema.additionalProperties
      const at = `${path}/${shortened(name)}`
      if (member === false) return { path: at, message: 'is not an argument that exists' }
      const found = this.problem(member, value[name], at)
      if (found !== null) return found
    }
    return null
  }

  /** A text that is equal for equal values. */
  #textOf(value: unknown): string {
    if (typeof value !== 'object' || value === null) {
      if (typeof value === 'string') this.#spend(Math.ceil(value.length / BYTES_PER_STEP))
      return JSON.stringify(value)
    }
    const number = numberOf(value)
    const text = JSON.stringify(number ?? sorted(value))
    this.#spend(Math.ceil(text.length / BYTES_PER_STEP))
    return text
  }
}

/** A value with the members of its objects in order, and plain numbers. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (JSON.isRawJSON(value)) return Number(value.rawJSON)
  if (!isObject(value)) return value
  const names = Object.keys(value).toSorted()
  return names.map((name) => [name, sorted(value[name])])
}

function listOf(list: unknown): readonly unknown[] {
  return Array.isArray(list) ? list : []
}

/** Problem of a size: `minLength`, `maxItems` and their like. Characters are counted in code points where that may matter. */
function sized(
  schema: Schema,
  unit: 'Length' | 'Items' | 'Properties',
  size: number,
  { path, what, value }: { readonly path: string; readonly what: string; readonly value?: string },
): SchemaProblem | null {
  const least = schema[`min${unit}`]
  const most = schema[`max${unit}`]
  const isOutside = (count: number) =>
    (typeof least === 'number' && count < least) || (typeof most === 'number' && count > most)
  const isWide = value !== undefined && typeof least === 'number'
  if (!isOutside(size) && !isWide) return null
  const count = value === undefined ? size : codePoints(value)
  if (!isOutside(count)) return null
  return typeof least === 'number' && count < least
    ? { path, message: `must have at least ${least} ${what}` }
    : { path, message: `must have at most ${most} ${what}` }
}

function codePoints(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const isPair = (text.codePointAt(at) ?? 0) > 0xffff
    if (isPair) at++
    count++
  }
  return count
}

/** Relative deviation up to which a quotient is an integer: 0.3 is a multiple of 0.1. */
const QUOTIENT_EPSILON = 1e-9

function bounded(schema: Schema, number: number, path: string): SchemaProblem | null {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  if (typeof minimum === 'number' && number < minimum) return { path, message: `must be at least ${minimum}` }
  if (typeof maximum === 'number' && number > maximum) return { path, message: `must be at most ${maximum}` }
  if (typeof exclusiveMinimum === 'number' && number <= exclusiveMinimum)
    return { path, message: `must be more than ${exclusiveMinimum}` }
  if (typeof exclusiveMaximum === 'number' && number >= exclusiveMaximum)
    return { path, message: `must be less than ${exclusiveMaximum}` }
  if (typeof multipleOf !== 'number') return null
  const quotient = number / multipleOf
  const isMultiple = Math.abs(quotient - Math.round(quotient)) <= Math.abs(quotient) * QUOTIENT_EPSILON
  return isMultiple ? null : { path, message: `must be a multiple of ${multipleOf}` }
}

/** Values that are listed in a message, and their characters. */
const LISTED_MAX = 20
const LISTED_MAX_CHARS = 60

function listing(values: readonly unknown[]): string {
  const listed = values.slice(0, LISTED_MAX).map((value) => shortened(JSON.stringify(value)))
  return `${listed.join(', ')}${values.length > LISTED_MAX ? ', …' : ''}`
}

function shortened(text: string): string {
  return (text.length > LISTED_MAX_CHARS ? `${text.slice(0, LISTED_MAX_CHARS)}…` : text).toWellFormed()
}
