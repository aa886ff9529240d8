/** The bytes are not DER, or not of the expected structure. */
export class DerError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'DerError'
  }
}

/** One ASN.1 value of X.690: its tag, its content, and the values in it when it is constructed. */
export interface DerValue {
  /** The identifier octet: class, constructed bit and number (below 31). */
  readonly tag: number
  readonly content: Uint8Array
  /** Tag, length and content as they were read. */
  readonly whole: Uint8Array
  /** Empty for a primitive value. */
  readonly children: readonly DerValue[]
  /** BER's indefinite length; accepted only if enabled. */
  readonly indefinite: boolean
}

/** Tags of the universal class that are used here. */
export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  sequence: 0x30,
  set: 0x31,
} as const

/** Nesting and number of values in one input. */
const MAX_DEPTH = 24
const MAX_VALUES = 20_000
/** Largest input, in bytes. */
const MAX_BYTES = 256 * 1024

const CONSTRUCTED = 0x20

/**
 * Reads exactly one value and all that is in it. Lengths must be of the shortest form and nothing may follow. With
 * `indefinite` lengths with an end mark are read as well: that is how some signers write the outer layers of CMS.
 * @throws DerError
 */
export function readDer(bytes: Uint8Array, { indefinite = false }: { readonly indefinite?: boolean } = {}): DerValue {
  if (bytes.length > MAX_BYTES) throw new DerError('too long')
  const state: ReadState = { bytes, indefinite, values: 0 }
  const value = readValue(state, { at: 0, end: bytes.length, depth: 0 })
  if (value.whole.length !== bytes.length) throw new DerError('bytes follow the value')
  return value
}

interface ReadState {
  readonly bytes: Uint8Array
  readonly indefinite: boolean
  values: number
}

interface DerPosition {
  readonly at: number
  /** The end of the value around it. */
  readonly end: number
  readonly depth: number
}

function readValue(state: ReadState, { at, end, depth }: DerPosition): DerValue {
  if (depth > MAX_DEPTH || ++state.values > MAX_VALUES) throw new DerError('too deep or too many values')
  const tag = byteAt(state, at, end)
  if ((tag & 0x1f) === 0x1f) throw new DerError('tags above 30 are not read')
  const constructed = (tag & CONSTRUCTED) !== 0
  const first = byteAt(state, at + 1, end)
  if (first === 0x80) return readIndefinite(state, { at, end, depth })
  const { length, start } = readLength(state, at + 1, end)
  const stop = start + length
  if (stop > end) throw new DerError('cut short')
  const children = constructed ? readChildren(state, { at: start, end: stop, depth: depth + 1 }) : []
  return {
    tag,
    content: state.bytes.subarray(start, stop),
    whole: state.bytes.subarray(at, stop),
    children,
    indefinite: false,
  }
}

function readChildren(state: ReadState, place: DerPosition): readonly DerValue[] {
  const children: DerValue[] = []
  for (let at = place.at; at < place.end; ) {
    const child = readValue(state, { ...place, at })
    children.push(child)
    at += child.whole.length
  }
  return children
}

function readIndefinite(state: ReadState, { at, end, depth }: DerPosition): DerValue {
  const tag = byteAt(state, at, end)
  if (!state.indefinite || (tag & CONSTRUCTED) === 0) throw new DerError('a length with an end mark')
  const children: DerValue[] = []
  let next = at + 2
  while (byteAt(state, next, end) !== 0) {
    const child = readValue(state, { at: next, end, depth: depth + 1 })
    children.push(child)
    next += child.whole.length
  }
  if (byteAt(state, next + 1, end) !== 0) throw new DerError('a bad end mark')
  return {
    tag,
    content: state.bytes.subarray(at + 2, next),
    whole: state.bytes.subarray(at, next + 2),
    children,
    indefinite: true,
  }
}

function readLength(state: ReadState, at: number, end: number): { readonly length: number; readonly start: number } {
  const first = byteAt(state, at, end)
  if (first < 0x80) return { length: first, start: at + 1 }
  const octets = first & 0x7f
  if (octets > 3) throw new DerError('a length that is too large')
  let length = 0
  for (let i = 1; i <= octets; i++) length = length * 256 + byteAt(state, at + i, end)
  const shortest = length < 0x80 ? 0 : length < 0x100 ? 1 : length < 0x10000 ? 2 : 3
  if (octets !== shortest) throw new DerError('a length that is not of the shortest form')
  return { length, start: at + 1 + octets }
}

function byteAt({ bytes }: ReadState, at: number, end: number): number {
  const byte = at < end ? bytes[at] : undefined
  if (byte === undefined) throw new DerError('cut short')
  return byte
}

/** The value when it has this tag. @throws DerError */
export function expectTag(value: DerValue | undefined, tag: number): DerValue {
  if (value?.tag === tag) return value
  throw new DerError(`expected a value of tag 0x${tag.toString(16)}`)
}

/** An object identifier in dotted form. @throws DerError */
export function oidOf(value: DerValue | undefined): string {
  const { content } = expectTag(value, TAG.oid)
  const arcs: number[] = []
  let arc = 0
  for (const byte of content) {
    arc = arc * 128 + (byte & 0x7f)
    if (arc > Number.MAX_SAFE_INTEGER / 256) throw new DerError('an arc that is too large')
    if (byte >= 0x80) continue
    arcs.push(arc)
    arc = 0
  }
  const [first, ...rest] = arcs
  if (first === undefined || (content.at(-1) ?? 0x80) >= 0x80) throw new DerError('an object identifier cut short')
  const root = Math.min(2, Math.floor(first / 40))
  return [root, first - root * 40, ...rest].join('.')
}

/** An integer from 0 to 2^47. @throws DerError */
export function smallInteger(value: DerValue | undefined): number {
  const { content } = expectTag(value, TAG.integer)
  if (content.length === 0 || content.length > 6 || (content[0] ?? 0x80) >= 0x80) throw new DerError('an integer')
  return content.reduce((sum, byte) => sum * 256 + byte, 0)
}
