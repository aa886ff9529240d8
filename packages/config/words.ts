import { isObject } from '@plat/core'
import type { Problem } from './block.ts'
import type { Node } from './node.ts'

/** Maximum length of an invalid value quoted in a message, in characters. */
const MAX_SHOWN = 60

/** Returns the path of a member: `identity.issuer`, and `upstreams["a b"]` when the key is not a plain word. */
export function memberPath(parent: string, key: string): string {
  if (!/^[A-Za-z_]\w*$/.test(key)) return `${parent}[${JSON.stringify(key)}]`
  return parent === '' ? key : `${parent}.${key}`
}

/** Returns the path without its last step, or null for the file itself. */
export function parentPath(path: string): string | null {
  if (path === '') return null
  let last = 0
  let end = 0
  for (const { 0: step, index } of path.matchAll(/\.?\w+|\[\d+\]|\["(?:[^"\\]|\\.)*"\]/g)) {
    last = index
    end = index + step.length
  }
  return end === path.length ? path.slice(0, last) : ''
}

/** One line: `<path>: <message>`, a warning marked as such. */
export function formatProblem({ path, message, severity }: Problem): string {
  const line = path === '' ? message : `${path}: ${message}`
  return severity === 'warning' ? `warning: ${line}` : line
}

const KINDS: Readonly<Record<string, string>> = {
  object: 'an object',
  array: 'a list',
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
}

/** Returns the problem of the value itself, without members and items; null when there is none. */
export function faultOf(node: Node, value: unknown): string | null {
  const got = `, got ${show(value)}`
  if (node.enum !== undefined) {
    return node.enum.includes(value) ? null : `must be one of ${node.enum.join(', ')}${got}`
  }
  // A number beyond 2^53 differs from the one written.
  if (node.type === 'integer' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    return `must be an integer from -${Number.MAX_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}`
  }
  if (node.type !== undefined && !isOfType(node.type, value)) return `must be ${KINDS[node.type] ?? node.type}${got}`
  if (typeof value === 'number') return rangeFault(node, value)
  if (typeof value === 'string') return textFault(node, value)
  if (Array.isArray(value)) return countFault(node, value.length)
  return null
}

/** Returns the alternative with the type of the value, or a message when there is none. */
export function alternativeFor(alternatives: readonly Node[], value: unknown): Node | string {
  const fits = alternatives.find(({ type }) => type === undefined || isOfType(type, value))
  if (fits !== undefined) return fits
  const kinds = alternatives.map(({ type = '' }) => KINDS[type] ?? type)
  return `must be ${kinds.join(' or ')}, got ${show(value)}`
}

function isOfType(type: string, value: unknown): boolean {
  switch (type) {
    case 'object':
      return isObject(value)
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return typeof value === 'number' && Number.isFinite(value)
    default:
      return typeof value === type
  }
}

function rangeFault({ minimum, maximum, exclusiveMinimum }: Node, value: number): string | null {
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) {
    return `must be more than ${exclusiveMinimum}, got ${value}`
  }
  const below = minimum !== undefined && value < minimum
  const above = maximum !== undefined && value > maximum
  if (!below && !above) return null
  if (minimum === undefined) return `must be at most ${maximum}, got ${value}`
  return maximum === undefined
    ? `must be at least ${minimum}, got ${value}`
    : `must be from ${minimum} to ${maximum}, got ${value}`
}

function textFault(node: Node, text: string): string | null {
  if (node.minLength !== undefined && text.length < node.minLength) return 'must not be empty'
  if (node.maxLength !== undefined && text.length > node.maxLength) {
    return `must have at most ${node.maxLength} characters, has ${text.length}`
  }
  if (node.pattern !== undefined && !new RegExp(node.pattern).test(text)) {
    return `must match ${node.pattern}, got ${show(text)}`
  }
  return text === '' || node.format === undefined ? null : formatFault(node.format, text)
}

function formatFault(format: NonNullable<Node['format']>, text: string): string | null {
  if (format === 'http-url')
    return isHttpUrl(text) ? null : `must be an http or https URL with a host, got ${show(text)}`
  return isListenAddress(text) ? null : `must be an address such as :8080 or 127.0.0.1:8080, got ${show(text)}`
}

/** Returns whether the text is an absolute http or https URL with a host, written with `//` (the URL parser alone would accept `http:host`). */
export function isHttpUrl(text: string): boolean {
  return /^https?:\/\/[^/?#\s]/i.test(text) && URL.canParse(text)
}

const MAX_PORT = 65_535

/** Returns whether the text is `host:port` with an optional host; IPv6 hosts are in brackets. */
export function isListenAddress(text: string): boolean {
  const match = /^(?:\[[0-9A-Fa-f:.]+\]|[^\s:[\]]*):(\d{1,5})$/.exec(text)
  return match !== null && Number(match[1]) <= MAX_PORT
}

function countFault({ minItems, maxItems }: Node, count: number): string | null {
  if (minItems !== undefined && count < minItems) return `must have at least ${minItems} entries, has ${count}`
  if (maxItems !== undefined && count > maxItems) return `must have at most ${maxItems} entries, has ${count}`
  return null
}

function show(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  // The part of a URL before the @ is usually a credential.
  const text = JSON.stringify(value).replace(/\/\/[^/@\s]*@/, '//…@')
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}
