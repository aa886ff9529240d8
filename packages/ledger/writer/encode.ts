import type { Rec, RecValue } from '../types.ts'

/** Longest string of a record in bytes of UTF-8; a longer one is cut at a code point and ends with `…`. */
export const MAX_STRING_BYTES = 1024
/** Largest record in bytes of canonical JSON. */
export const MAX_RECORD_BYTES = 256 * 1024
/** Deepest nesting of a record's members. */
const MAX_DEPTH = 8
const ELLIPSIS = '…'
const ELLIPSIS_BYTES = 3
/** A string this short fits whatever its characters are: three bytes of UTF-8 for each UTF-16 unit. */
const ALWAYS_FITS = Math.floor(MAX_STRING_BYTES / 3)

/** A record that has no canonical form: a mistake of the program, named by member. */
export class RecordFault extends TypeError {}

/** What the ledger itself puts into every record. */
export interface Stamp {
  /** RFC 3339 with microseconds, UTC. */
  readonly at: string
  readonly tenant: string
  readonly replica: string
}

/**
 * Every top-level member of the ledger line format in canonical order (RFC 8785: UTF-16 units), so that the records of
 * governed calls are written without sorting. A record with another member takes the general way.
 */
const MEMBERS = [
  'action',
  'agent',
  'argsBytes',
  'argsSha256',
  'at',
  'attempts',
  'bytesDown',
  'bytesUp',
  'call',
  'code',
  'costMicros',
  'currency',
  'endpoint',
  'facts',
  'frames',
  'holds',
  'jti',
  'kind',
  'maxTokens',
  'method',
  'model',
  'ms',
  'namespace',
  'op',
  'parent',
  'policy',
  'policyRevision',
  'priceId',
  'reason',
  'replica',
  'result',
  'route',
  'rule',
  'server',
  'session',
  'settled',
  'status',
  'taintsAdded',
  'taintsCleared',
  'tenant',
  'tool',
  'upstreamMs',
  'usage',
  'usageSource',
  'user',
] as const
/** `,"name":` of each member, made once. */
const KNOWN = MEMBERS.map((name) => ({ name, label: `,"${name}":` }))

function isStamped(name: string): name is keyof Stamp {
  return name === 'at' || name === 'tenant' || name === 'replica'
}

/** A record as canonical JSON (RFC 8785), stamped. Absent beats null: undefined members are left out. Throws `RecordFault`. */
export function encodeRecord(rec: Rec, stamp: Stamp): string {
  for (const name in rec) {
    if (!KNOWN_NAMES.has(name) && rec[name] !== undefined) return checkedSize(objectText({ ...rec, ...stamp }, '', 0))
  }
  let text = ''
  for (const { name, label } of KNOWN) {
    const value = isStamped(name) ? stamp[name] : rec[name]
    if (value === undefined) continue
    text += label + (typeof value === 'string' ? stringText(value) : valueText(value, name, 1))
  }
  // Each member brings its comma; the first one's place is the brace's.
  return checkedSize(`{${text.slice(1)}}`)
}

const KNOWN_NAMES: ReadonlySet<string> = new Set(MEMBERS)

function checkedSize(text: string): string {
  // A UTF-16 unit is at most three bytes of UTF-8: most records need no counting.
  if (text.length * 3 > MAX_RECORD_BYTES && Buffer.byteLength(text) > MAX_RECORD_BYTES) {
    throw new RecordFault(`the record is larger than ${MAX_RECORD_BYTES} bytes`)
  }
  return text
}

function valueText(value: RecValue, path: string, depth: number): string {
  switch (typeof value) {
    case 'string':
      return stringText(value)
    case 'number':
      if (!Number.isSafeInteger(value)) throw new RecordFault(`${path}: ${value} is not an integer within 2^53`)
      return value === 0 ? '0' : String(value)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      if (value === null) throw new RecordFault(`${path}: null; leave the member out`)
      if (depth > MAX_DEPTH) throw new RecordFault(`${path}: nested deeper than ${MAX_DEPTH}`)
      return isList(value) ? listText(value, path, depth) : objectText(value, path, depth)
    default:
      throw new RecordFault(`${path}: a ${typeof value} has no canonical form`)
  }
}

function isList(value: object): value is readonly (RecValue | undefined)[] {
  return Array.isArray(value)
}

function listText(list: readonly (RecValue | undefined)[], path: string, depth: number): string {
  let text = ''
  for (const value of list) {
    if (value === undefined) continue
    text += text === '' ? '' : ','
    text += typeof value === 'string' ? stringText(value) : valueText(value, `${path}[]`, depth + 1)
  }
  return `[${text}]`
}

function objectText(value: { readonly [member: string]: RecValue | undefined }, path: string, depth: number): string {
  let text = ''
  for (const name of Object.keys(value).sort()) {
    const member = value[name]
    if (member === undefined) continue
    const label = path === '' ? name : `${path}.${name}`
    text += `${text === '' ? '' : ','}${stringText(name)}:${valueText(member, label, depth + 1)}`
  }
  return `{${text}}`
}

/** Short ASCII without anything to escape: what nearly every member holds. */
const PLAIN = /^[ !#-[\]-~]{0,128}$/

/** A string in quotes, well-formed (a lone surrogate becomes U+FFFD) and at most `MAX_STRING_BYTES` long. */
function stringText(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`
  const whole = text.toWellFormed()
  return JSON.stringify(whole.length <= ALWAYS_FITS ? whole : cut(whole))
}

function cut(text: string): string {
  if (text.length <= MAX_STRING_BYTES && Buffer.byteLength(text) <= MAX_STRING_BYTES) return text
  const bytes = Buffer.from(text.slice(0, MAX_STRING_BYTES))
  let end = MAX_STRING_BYTES - ELLIPSIS_BYTES
  while (isContinuation(bytes[end])) end--
  return bytes.toString('utf8', 0, end) + ELLIPSIS
}

/** A byte inside a code point's UTF-8, not at its start. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
