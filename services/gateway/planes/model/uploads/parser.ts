/** Parts of a multipart body, in their order: `head` begins a part, `data` is some of its bytes, `end` the end of the body. */
export type MultipartEvent =
  | { readonly kind: 'head'; readonly name: string; readonly filename: string | null; readonly type: string | null }
  | { readonly kind: 'data'; readonly bytes: Buffer }
  | { readonly kind: 'end' }

/** The body is not `multipart/form-data` as RFC 7578 has it. */
export class MultipartError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MultipartError'
  }
}

/** Longest head of a part, in bytes. */
const MAX_HEAD_BYTES = 2048
const HEAD_END = Buffer.from('\r\n\r\n')
const LINE_END = Buffer.from('\r\n')
const LAST_END = Buffer.from('--')
const RETURN = 0x0d
/** Above this number of bytes, a native search for the next line end is faster. */
const SHORT_PIECE = 16

/** Returns the boundary of a content type; null: it is not `multipart/form-data`, or has no valid boundary. */
export function boundaryOf(contentType: string | undefined): string | null {
  const found = /^multipart\/form-data\s*;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))\s*$/i.exec(contentType ?? '')
  const boundary = found?.[1] ?? found?.[2] ?? ''
  return /^[0-9A-Za-z'()+_,\-./:=?]{1,70}$/.test(boundary) ? boundary : null
}

/**
 * Parses a multipart body as it arrives. Strict: what two parsers could read in two ways is refused, such as text before the first part, other
 * headers than the two of a form, repeated ones, and names with escapes. Each byte is read once, in chunks of any size.
 */
export class MultipartParser {
  readonly #delimiter: Buffer
  #state: 'begin' | 'between' | 'head' | 'data' | 'done' = 'begin'
  /** How many bytes of what the state ends with have arrived. The body is read as if a line end came before it. */
  #matched = LINE_END.length
  /** The first of the two bytes behind a boundary. */
  #first: number | null = null
  readonly #head = Buffer.allocUnsafeSlow(MAX_HEAD_BYTES + HEAD_END.length)
  #headSize = 0

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
  }

  get isComplete(): boolean {
    return this.#state === 'done'
  }

  /** Returns what the next bytes complete; data is a part of the chunk. Throws MultipartError. */
  push(chunk: Uint8Array): readonly MultipartEvent[] {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const events: MultipartEvent[] = []
    for (let at = 0; at < bytes.length; )
      at = this.#state === 'data' ? this.#data(bytes, at, events) : this.#byte(bytes, at, events)
    return events
  }

  /** Reads one byte outside of the data of a part. */
  #byte(bytes: Buffer, at: number, events: MultipartEvent[]): number {
    const byte = bytes[at] ?? 0
    switch (this.#state) {
      case 'begin':
        if (byte !== this.#delimiter[this.#matched]) throw new MultipartError('it has no part at its beginning')
        if (++this.#matched === this.#delimiter.length) this.#enter('between')
        break
      case 'between':
        this.#between(byte, events)
        break
      case 'head':
        this.#addToHead(byte, events)
        break
      default:
        if (byte !== LINE_END[this.#matched++]) throw new MultipartError('it goes on after its last part')
    }
    return at + 1
  }

  #enter(state: 'between' | 'head' | 'data' | 'done'): void {
    this.#state = state
    this.#matched = 0
  }

  /** The bytes behind a boundary: a line end, or two hyphens behind the last one. */
  #between(byte: number, events: MultipartEvent[]): void {
    const first = this.#first
    if (first === null) {
      this.#first = byte
      return
    }
    this.#first = null
    const isLast = first === LAST_END[0] && byte === LAST_END[1]
    if (!isLast && (first !== LINE_END[0] || byte !== LINE_END[1]))
      throw new MultipartError('a boundary is followed by other text')
    if (isLast) events.push({ kind: 'end' })
    this.#enter(isLast ? 'done' : 'head')
  }

  #addToHead(byte: number, events: MultipartEvent[]): void {
    this.#head[this.#headSize++] = byte
    this.#matched = matchedWith(HEAD_END, this.#matched, byte)
    if (this.#headSize - this.#matched > MAX_HEAD_BYTES)
      throw new MultipartError(`the head of a part is longer than ${MAX_HEAD_BYTES} bytes`)
    if (this.#matched < HEAD_END.length) return
    events.push(headOf(this.#head.toString('utf8', 0, this.#headSize - HEAD_END.length)))
    this.#headSize = 0
    this.#enter('data')
  }

  /** Reads data to the end of the part or of the chunk; returns where it stopped. */
  #data(bytes: Buffer, from: number, events: MultipartEvent[]): number {
    const delimiter = this.#delimiter
    /** How many of the matched bytes came with earlier chunks: data, unless the delimiter goes on here. */
    let carried = this.#matched
    let matched = carried
    let at = from
    while (at < bytes.length && matched < delimiter.length) {
      if (matched === 0 && bytes.length - at > SHORT_PIECE) {
        const next = bytes.indexOf(RETURN, at)
        at = next === -1 ? bytes.length : next
        if (next === -1) break
      }
      const next = matchedWith(delimiter, matched, bytes[at++] ?? 0)
      if (next <= matched && carried > 0) {
        events.push({ kind: 'data', bytes: delimiter.subarray(0, carried) })
        carried = 0
      }
      matched = next
    }
    const end = at - (matched - carried)
    if (end > from) events.push({ kind: 'data', bytes: bytes.subarray(from, end) })
    if (matched === delimiter.length) this.#enter('between')
    else this.#matched = matched
    return at
  }
}

/** Returns how many bytes of a delimiter are matched with one more byte. It starts with a return, and so does a match after a mismatch. */
function matchedWith(delimiter: Buffer, matched: number, byte: number): number {
  if (byte === delimiter[matched]) return matched + 1
  return byte === RETURN ? 1 : 0
}

/** A quoted value without quotes and backslashes; browsers and clients write `%22` for a quote. */
const DISPOSITION = /^form-data; *name="([^"\\\r\n]{1,256})"(?:; *filename="([^"\\\r\n]{0,512})")?$/i
const TYPE =
  /^[A-Za-z0-9!#$&^_.+-]{1,127}\/[A-Za-z0-9!#$&^_.+-]{1,127}(?: *; *[A-Za-z0-9_.-]{1,64}="?[A-Za-z0-9_.-]{1,64}"?)*$/

function headOf(text: string): MultipartEvent {
  const headers = new Map<string, string>()
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon)).toLowerCase()
    if (headers.has(name)) throw new MultipartError('a part has a header twice')
    headers.set(name, line.slice(colon + 1).trim())
  }
  const disposition = DISPOSITION.exec(headers.get('content-disposition') ?? '')
  const type = headers.get('content-type') ?? null
  const known = (disposition === null ? 0 : 1) + (type === null ? 0 : 1)
  const isPlain = [...text].every((one) => one >= ' ' || one === '\r' || one === '\n' || one === '\t')
  if (disposition === null || headers.size !== known || !isPlain || text.includes('\ufffd'))
    throw new MultipartError('a part needs Content-Disposition: form-data; name="…", and only Content-Type beside it')
  if (type !== null && !TYPE.test(type)) throw new MultipartError('a part has an invalid Content-Type')
  return { kind: 'head', name: disposition[1] ?? '', filename: disposition[2] ?? null, type }
}
