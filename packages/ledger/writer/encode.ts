import { canonicalJson } from '@plat/core'
import type { Rec, RecValue } from '../types.ts'

/** Maximum length of a string in UTF-8 bytes; a longer one is cut at a code point and ends with `…`. */
export const MAX_STRING_BYTES = 1024
/** Maximum size of a record in bytes of canonical JSON. */
export const MAX_RECORD_BYTES = 256 * 1024
/** Maximum nesting of a record's members. */
const MAX_DEPTH = 8
const ELLIPSIS = '…'
const ELLIPSIS_BYTES = 3
/** A string this short always fits: at most three UTF-8 bytes per UTF-16 unit. */
const ALWAYS_FITS = Math.floor(MAX_STRING_BYTES / 3)

/** Output of `JSON.stringify` for a lone surrogate. A caller's backslash followed by `ud` looks the same, which only costs time. */
const LONE_SURROGATE = '\\ud'

/** A record without a canonical form: a programming error, named by member. */
export class RecordError extends TypeError {}

/** Members that the ledger adds to every record. */
export interface Stamp {
  /** RFC 3339 with microseconds, UTC. */
  readonly at: string
  readonly tenant: string
  readonly replica: string
}

/**
 * Every top-level member of the ledger line format in canonical order (RFC 8785: UTF-16 units). A record with another member is encoded the general
 * way.
 */
function inOrder(rec: Rec, stamp: Stamp) {
  return {
    action: rec.action,
    agent: rec.agent,
    argsBytes: rec.argsBytes,
    argsSha256: rec.argsSha256,
    at: stamp.at,
    attempts: rec.attempts,
    batch: rec.batch,
    bytesDown: rec.bytesDown,
    bytesUp: rec.bytesUp,
    call: rec.call,
    code: rec.code,
    costMicros: rec.costMicros,
    currency: rec.currency,
    dlp: rec.dlp,
    endpoint: rec.endpoint,
    energy: rec.energy,
    engines: rec.engines,
    facts: rec.facts,
    frames: rec.frames,
    holds: rec.holds,
    jti: rec.jti,
    kind: rec.kind,
    maxTokens: rec.maxTokens,
    media: rec.media,
    method: rec.method,
    model: rec.model,
    ms: rec.ms,
    namespace: rec.namespace,
    op: rec.op,
    parent: rec.parent,
    policy: rec.policy,
    policyRevision: rec.policyRevision,
    priceId: rec.priceId,
    reason: rec.reason,
    replica: stamp.replica,
    result: rec.result,
    route: rec.route,
    rule: rec.rule,
    server: rec.server,
    session: rec.session,
    settled: rec.settled,
    spanId: rec.spanId,
    status: rec.status,
    taintsAdded: rec.taintsAdded,
    taintsCleared: rec.taintsCleared,
    tenant: stamp.tenant,
    tool: rec.tool,
    traceId: rec.traceId,
    upstreamMs: rec.upstreamMs,
    usage: rec.usage,
    usageSource: rec.usageSource,
    user: rec.user,
    wouldBe: rec.wouldBe,
  }
}

/** The same for the members of intents and decisions only: `JSON.stringify` needs time for each absent member as well. */
function openingInOrder(rec: Rec, stamp: Stamp) {
  return {
    action: rec.action,
    agent: rec.agent,
    argsBytes: rec.argsBytes,
    argsSha256: rec.argsSha256,
    at: stamp.at,
    call: rec.call,
    code: rec.code,
    dlp: rec.dlp,
    engines: rec.engines,
    facts: rec.facts,
    holds: rec.holds,
    jti: rec.jti,
    kind: rec.kind,
    method: rec.method,
    namespace: rec.namespace,
    op: rec.op,
    policy: rec.policy,
    policyRevision: rec.policyRevision,
    reason: rec.reason,
    replica: stamp.replica,
    rule: rec.rule,
    server: rec.server,
    session: rec.session,
    spanId: rec.spanId,
    tenant: stamp.tenant,
    tool: rec.tool,
    traceId: rec.traceId,
    user: rec.user,
    wouldBe: rec.wouldBe,
  }
}

/** The members of one kind of records. */
class Layout {
  readonly inOrder: (rec: Rec, stamp: Stamp) => object
  readonly #members: ReadonlySet<string>
  /** Members of the last record, in the order of its literal: nearly all records of a kind have the same. */
  readonly #known: string[] = []

  constructor(inOrder: Layout['inOrder']) {
    this.inOrder = inOrder
    this.#members = new Set(Object.keys(inOrder({ kind: 'gap' }, { at: '', tenant: '', replica: '' })))
  }

  /** Returns whether the kind has this member, which is the `at`-th of its record. One that is the same as in the last record needs no look-up. */
  has(name: string, at: number): boolean {
    if (this.#known[at] === name) return true
    if (!this.#members.has(name)) return false
    this.#known[at] = name
    return true
  }
}

const layouts = new Map<Rec['kind'], Layout>([
  ['intent', new Layout(openingInOrder)],
  ['decision', new Layout(openingInOrder)],
])

function layoutOf(kind: Rec['kind']): Layout {
  const known = layouts.get(kind)
  if (known !== undefined) return known
  const made = new Layout(inOrder)
  layouts.set(kind, made)
  return made
}

/**
 * Encodes a record with its stamp as canonical JSON (RFC 8785). Undefined members are omitted. Throws RecordError.
 *
 * Takes half the time when every string is flat: a single one composed with `+` makes `JSON.stringify` use its slow path for the whole record.
 */
export function encodeRecord(rec: Rec, stamp: Stamp): string {
  const layout = layoutOf(rec.kind)
  let at = 0
  for (const name in rec) {
    // Nearly every record is written directly, because its stringified form is canonical.
    if (!layout.has(name, at++) || !isCanonical(rec[name], 1)) return checkedSize(generalText(rec, stamp))
  }
  const text = JSON.stringify(layout.inOrder(rec, stamp))
  return checkedSize(text.includes(LONE_SURROGATE) ? generalText(rec, stamp) : text)
}

/** Records of these kinds contain signatures, which may exceed the string limit and must not be cut. */
const WHOLE: ReadonlySet<string> = new Set<Rec['kind']>(['checkpoint', 'anchor'])

function generalText(rec: Rec, stamp: Stamp): string {
  const whole = { ...rec, ...stamp }
  return WHOLE.has(rec.kind) ? canonicalJson(whole) : objectText(whole, '', 0)
}

/**
 * Returns whether `JSON.stringify` writes this value in canonical form and within the limits, except for lone surrogates, which are searched for in
 * the output. False only selects the general way.
 */
function isCanonical(value: RecValue | undefined, depth: number): boolean {
  if (typeof value === 'string') return value.length <= ALWAYS_FITS
  if (value === undefined || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isSafeInteger(value)
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return false
  return isList(value) ? isCanonicalList(value, depth) : isCanonicalObject(value, depth)
}

/** `JSON.stringify` writes an undefined element of a list as null. */
function isCanonicalList(list: readonly (RecValue | undefined)[], depth: number): boolean {
  for (const value of list) if (value === undefined || !isCanonical(value, depth + 1)) return false
  return true
}

/** Its members must be in order already. */
function isCanonicalObject(value: { readonly [member: string]: RecValue | undefined }, depth: number): boolean {
  let before = ''
  for (const name in value) {
    if (name < before || name.length > ALWAYS_FITS || !isCanonical(value[name], depth + 1)) return false
    before = name
  }
  return true
}

function checkedSize(text: string): string {
  // At most three UTF-8 bytes per UTF-16 unit: most records need no counting.
  if (text.length * 3 > MAX_RECORD_BYTES && Buffer.byteLength(text) > MAX_RECORD_BYTES) {
    throw new RecordError(`the record is larger than ${MAX_RECORD_BYTES} bytes`)
  }
  return text
}

function valueText(value: RecValue, path: string, depth: number): string {
  switch (typeof value) {
    case 'string':
      return stringText(value)
    case 'number':
      if (!Number.isSafeInteger(value)) throw new RecordError(`${path}: ${value} is not an integer within 2^53`)
      return value === 0 ? '0' : String(value)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      if (value === null) throw new RecordError(`${path}: null; leave the member out`)
      if (depth > MAX_DEPTH) throw new RecordError(`${path}: nested deeper than ${MAX_DEPTH}`)
      return isList(value) ? listText(value, path, depth) : objectText(value, path, depth)
    default:
      throw new RecordError(`${path}: a ${typeof value} has no canonical form`)
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

/** Quotes a string, well-formed (a lone surrogate becomes U+FFFD) and at most `MAX_STRING_BYTES` long. */
function stringText(text: string): string {
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

/** Returns whether the byte continues a UTF-8 code point. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
