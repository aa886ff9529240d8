import { isObject, type JsonObject } from '@plat/core'
import { type ApiDocument, DocumentError } from './document.ts'

/** Schemas of one tool, and their size as JSON: a model reads all of it with each call. */
const MAX_DEFINITIONS = 256
const MAX_SCHEMA_BYTES = 64 * 1024
/** Schemas within each other; below it is what references repeat. */
const MAX_DEPTH = 64
/** Values of an `enum`. */
const MAX_ENUM = 1024
const MAX_DESCRIPTION_CHARS = 1024

/** Schemas of arguments leave out what only an answer has (`readOnly`), those of answers what only a request has (`writeOnly`). */
export type SchemaUse = 'arguments' | 'answer'

const isText = (value: unknown) => typeof value === 'string'
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0
const isNumber = (value: unknown) => typeof value === 'number'
const isFlag = (value: unknown) => typeof value === 'boolean'

/** Keywords that are copied if their value has the right form. */
const PLAIN: Readonly<Record<string, (value: unknown) => boolean>> = {
  title: isText,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  minProperties: isCount,
  maxProperties: isCount,
  uniqueItems: isFlag,
  minimum: isNumber,
  maximum: isNumber,
  multipleOf: (value) => typeof value === 'number' && value > 0,
  deprecated: isFlag,
}

/** Keywords of arguments alone: answers are checked for their structure, since many APIs return more than they document. */
const OF_ARGUMENTS: Readonly<Record<string, (value: unknown) => boolean>> = {
  format: isText,
  pattern: isText,
  default: () => true,
}

const LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems'] as const
const TYPES: ReadonlySet<unknown> = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'])

/** A schema of JSON Schema 2020-12, `true` for any value. */
export type WrittenSchema = Record<string, unknown> | boolean

/**
 * Writes schemas of a document as JSON Schema 2020-12. What references lead to is a definition (`$defs`), so that neither cycles nor repeated
 * references make a schema grow. Unknown keywords are left out.
 */
export class SchemaWriter {
  readonly #document: ApiDocument
  readonly #use: SchemaUse
  /** Names of definitions, by reference. */
  readonly #names = new Map<string, string>()
  readonly #pending: string[] = []

  constructor(document: ApiDocument, use: SchemaUse) {
    this.#document = document
    this.#use = use
  }

  /** Returns a schema; references in it lead to definitions. Throws DocumentError. */
  write(schema: unknown, depth = 0): WrittenSchema {
    if (depth > MAX_DEPTH) throw new DocumentError(`has schemas nested deeper than ${MAX_DEPTH} levels`)
    if (typeof schema === 'boolean') return schema
    if (!isObject(schema)) return true
    if (typeof schema.$ref === 'string') return this.#reference(schema.$ref, schema)
    const written = this.#keywords(schema, depth)
    return this.#document.is30 && schema.nullable === true ? orNull(written) : written
  }

  /** Returns the whole schema with all definitions. Throws DocumentError if it is too large. */
  finish(schema: Record<string, unknown>): { type: 'object' } & Record<string, unknown> {
    const $defs: [string, WrittenSchema][] = []
    for (let reference = this.#pending.shift(); reference !== undefined; reference = this.#pending.shift())
      $defs.push([this.#names.get(reference) ?? '', this.write(this.#document.at(reference))])
    const whole = { ...schema, type: 'object' as const, ...($defs.length > 0 && { $defs: Object.fromEntries($defs) }) }
    if (JSON.stringify(whole).length > MAX_SCHEMA_BYTES)
      throw new DocumentError(`needs a schema of more than ${MAX_SCHEMA_BYTES} bytes`)
    return whole
  }

  #reference(reference: string, { description }: JsonObject): WrittenSchema {
    let name = this.#names.get(reference)
    if (name === undefined) {
      // A reference that leads nowhere is refused here, where the operation is known.
      this.#document.at(reference)
      if (this.#names.size >= MAX_DEFINITIONS) throw new DocumentError(`refers to more than ${MAX_DEFINITIONS} schemas`)
      name = this.#nameOf(reference)
      this.#names.set(reference, name)
      this.#pending.push(reference)
    }
    return { $ref: `#/$defs/${name}`, ...(isText(description) && { description: shortened(description) }) }
  }

  /** The last step of the reference, made unique. */
  #nameOf(reference: string): string {
    const last = reference.slice(reference.lastIndexOf('/') + 1).replace(/[^A-Za-z0-9_.-]/g, '_')
    const isFree = last !== '' && !this.#names.values().some((name) => name === last)
    return isFree ? last : `${last}_${this.#names.size}`
  }

  #keywords(schema: JsonObject, depth: number): Record<string, unknown> {
    const copied = { ...PLAIN, ...(this.#use === 'arguments' && OF_ARGUMENTS) }
    const written: Record<string, unknown> = {}
    for (const [name, isValid] of Object.entries(copied))
      if (schema[name] !== undefined && isValid(schema[name])) written[name] = schema[name]
    if (isText(schema.description)) written.description = shortened(schema.description)
    const type = typeOf(schema.type)
    if (type !== undefined) written.type = type
    if (Array.isArray(schema.enum) && schema.enum.length > 0) written.enum = enumOf(schema.enum)
    if (schema.const !== undefined) written.const = schema.const
    this.#bounds(schema, written)
    for (const name of LISTS) {
      const list = schema[name]
      if (Array.isArray(list) && list.length > 0) written[name] = list.map((one) => this.write(one, depth + 1))
    }
    if (schema.not !== undefined) written.not = this.write(schema.not, depth + 1)
    if (schema.items !== undefined) written.items = this.write(schema.items, depth + 1)
    this.#members(schema, written, depth)
    return written
  }

  /** In 3.0 the exclusive bounds are flags. */
  #bounds(schema: JsonObject, written: Record<string, unknown>): void {
    for (const [exclusive, bound] of [
      ['exclusiveMinimum', 'minimum'],
      ['exclusiveMaximum', 'maximum'],
    ] as const) {
      const value = schema[exclusive]
      if (typeof value === 'number') written[exclusive] = value
      else if (value === true && written[bound] !== undefined) {
        written[exclusive] = written[bound]
        delete written[bound]
      }
    }
  }

  #members(schema: JsonObject, written: Record<string, unknown>, depth: number): void {
    const properties = isObject(schema.properties) ? Object.entries(schema.properties) : []
    const leftOut = new Set(properties.flatMap(([name, member]) => (this.#isLeftOut(member) ? [name] : [])))
    const included = properties.filter(([name]) => !leftOut.has(name))
    if (included.length > 0)
      written.properties = Object.fromEntries(included.map(([name, member]) => [name, this.write(member, depth + 1)]))
    if (Array.isArray(schema.required)) {
      const required = schema.required.filter((name) => typeof name === 'string' && !leftOut.has(name))
      if (required.length > 0) written.required = [...new Set(required)]
    }
    const { additionalProperties: others, patternProperties } = schema
    // Names of patterns would count as unknown ones.
    if (others === undefined || others === true || patternProperties !== undefined) return
    if (others !== false) written.additionalProperties = this.write(others, depth + 1)
    else if (this.#use === 'arguments') written.additionalProperties = false
  }

  #isLeftOut(member: unknown): boolean {
    if (!isObject(member)) return false
    return (this.#use === 'arguments' ? member.readOnly : member.writeOnly) === true
  }
}

function typeOf(type: unknown): unknown {
  if (TYPES.has(type)) return type
  if (!Array.isArray(type)) return undefined
  const known = type.filter((one) => TYPES.has(one))
  return known.length === 0 ? undefined : [...new Set(known)]
}

function enumOf(values: readonly unknown[]): readonly unknown[] {
  if (values.length > MAX_ENUM) throw new DocumentError(`has an enum of more than ${MAX_ENUM} values`)
  return values
}

/** `nullable` of 3.0. */
function orNull(schema: Record<string, unknown>): Record<string, unknown> {
  const { type, enum: values } = schema
  if (typeof type !== 'string') return type === undefined ? { anyOf: [schema, { type: 'null' }] } : schema
  const listed = Array.isArray(values) && !values.includes(null) ? { enum: [...values, null] } : {}
  return { ...schema, ...listed, type: [type, 'null'] }
}

function shortened(text: unknown): string {
  return String(text).slice(0, MAX_DESCRIPTION_CHARS).toWellFormed()
}
