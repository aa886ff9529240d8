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

/** Longest head of a part, in bytes; a head that arrives byte by byte costs its square. */
const MAX_HEAD_BYTES = 2048
const HEAD_END = Buffer.from('\r\n\r\n')

/** Returns the boundary of a content type; null: it is not `multipart/form-data`, or has no valid boundary. */
export function boundaryOf(contentType: string | undefined): string | null {
  const found = /^multipart\/form-data\s*;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))\s*$/i.exec(contentType ?? '')
  const boundary = found?.[1] ?? found?.[2] ?? ''
  return /^[0-9A-Za-z'()+_,\-./:=?]{1,70}$/.test(boundary) ? boundary : null
}

/**
 * Parses a multipart body as it arrives. Strict: what two parsers could read in two ways is refused, such as text before the first part, other
 * headers than the two of a form, repeated ones, and names with escapes.
 */
export class MultipartParser {
  readonly #delimiter: Buffer
  #state: 'head' | 'data' | 'between' | 'done' = 'between'
  /** Bytes that are not read yet; the body is read as if a line end came before it. */
  #rest: Buffer = Buffer.from('\r\n')
  #begun = false

  constructor(boundary: string) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`)
  }

  get isComplete(): boolean {
    return this.#state === 'done'
  }

  /** Returns what the next bytes complete. Throws MultipartError. */
  push(chunk: Uint8Array): readonly MultipartEvent[] {
    const events: MultipartEvent[] = []
    this.#rest = Buffer.concat([this.#rest, chunk])
    while (this.#step(events));
    return events
  }

  /** Returns false when more bytes are needed. */
  #step(events: MultipartEvent[]): boolean {
    switch (this.#state) {
      case 'between':
        return this.#between(events)
      case 'head':
        return this.#head(events)
      case 'data':
        return this.#data(events)
      case 'done':
        if (this.#rest.length > 2 || !'\r\n'.startsWith(this.#rest.toString('latin1')))
          throw new MultipartError('it goes on after its last part')
        return false
    }
  }

  #between(events: MultipartEvent[]): boolean {
    const { length } = this.#delimiter
    const known = this.#begun ? 0 : length
    const prefix = this.#rest.subarray(0, known)
    if (!this.#delimiter.subarray(0, prefix.length).equals(prefix))
      throw new MultipartError('it has no part at its beginning')
    if (this.#rest.length < known + 2) return false
    const next = this.#rest.toString('latin1', known, known + 2)
    if (next !== '\r\n' && next !== '--') throw new MultipartError('a boundary is followed by other text')
    this.#begun = true
    this.#rest = this.#rest.subarray(known + 2)
    this.#state = next === '--' ? 'done' : 'head'
    if (next === '--') events.push({ kind: 'end' })
    return true
  }

  #head(events: MultipartEvent[]): boolean {
    const end = this.#rest.indexOf(HEAD_END)
    if (end === -1 ? this.#rest.length > MAX_HEAD_BYTES : end > MAX_HEAD_BYTES)
      throw new MultipartError(`the head of a part is longer than ${MAX_HEAD_BYTES} bytes`)
    if (end === -1) return false
    events.push(headOf(this.#rest.toString('utf8', 0, end)))
    this.#rest = this.#rest.subarray(end + HEAD_END.length)
    this.#state = 'data'
    return true
  }

  #data(events: MultipartEvent[]): boolean {
    const at = this.#rest.indexOf(this.#delimiter)
    const size = at === -1 ? this.#rest.length - this.#delimiter.length : at
    if (size > 0) events.push({ kind: 'data', bytes: this.#rest.subarray(0, size) })
    if (at === -1) {
      this.#rest = size > 0 ? Buffer.from(this.#rest.subarray(size)) : this.#rest
      return false
    }
    this.#rest = this.#rest.subarray(at + this.#delimiter.length)
    this.#state = 'between'
    return true
  }
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
