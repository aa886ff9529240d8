import Type, { type TSchema } from 'typebox'
import { LONGEST_SECONDS } from './block.ts'

/** Keys as the tables of gateway.json write them: what a key is, its default, and what it means. Absent means default. */

export const text = (description: string, preset = '', pattern?: string) =>
  Type.String({ default: preset, description, ...(pattern !== undefined && { pattern }) })

/** A string that its object requires. */
export const needed = (description: string, pattern?: string) =>
  Type.String({ minLength: 1, description, ...(pattern !== undefined && { pattern }) })

/** An http or https URL; unset when empty. */
export const url = (description: string) => Type.String({ default: '', format: 'http-url', description })

/** The path of a file to read; its absence at start is a warning by default. */
export const file = (description: string, missing: 'error' | 'warning' = 'warning') =>
  Type.String({ default: '', file: missing, description })

export const flag = (description: string, preset = false) => Type.Boolean({ default: preset, description })

/** One of a closed set. */
export const choice = <const T extends string[]>(values: readonly [...T], preset: T[number], description: string) =>
  Type.Enum(values, { default: preset, description })

/** A whole number from `least` to `most`, inclusive. */
export const whole = (description: string, preset: number, least = 0, most = Number.MAX_SAFE_INTEGER) =>
  Type.Integer({
    default: preset,
    minimum: least,
    ...(most !== Number.MAX_SAFE_INTEGER && { maximum: most }),
    description,
  })

/** A duration in whole seconds that becomes a timer. */
export const seconds = (description: string, preset: number, least = 1) =>
  whole(description, preset, least, LONGEST_SECONDS)

/** A duration in whole milliseconds that becomes a timer. */
export const millis = (description: string, preset: number) => whole(description, preset, 1, LONGEST_SECONDS * 1000)

/** A list of non-empty strings. */
export const texts = (description: string, preset: readonly string[] = []) =>
  Type.Array(Type.String({ minLength: 1 }), { default: [...preset], description })

/** An object of known keys; when absent, all of them have their defaults. */
export const group = <T extends Record<string, TSchema>>(properties: T, description = '') =>
  Type.Object(properties, { default: {}, description })

/** A list of objects. */
export const groups = <T extends Record<string, TSchema>>(properties: T, description: string) =>
  Type.Array(Type.Object(properties), { default: [], description })

/** A map from free names to `values`. */
export const map = <T extends TSchema>(values: T, description: string) =>
  Type.Record(Type.String(), values, { default: {}, description })

/** A number from `least` to `most`, inclusive. */
export const ratio = (description: string, preset: number, least: number, most: number) =>
  Type.Number({ default: preset, minimum: least, maximum: most, description })

const JURISDICTION = '^(?:[A-Za-z]{2}(?:-[A-Za-z0-9]{1,8})*)?$'

/** A jurisdiction as in a SovereigntyPolicy; empty: not stated. */
export const jurisdiction = (description: string) => text(`${description} ISO 3166 code or \`EU\`.`, '', JURISDICTION)
