import { isObject, JsonError, type JsonObject, MESSAGE_LIMITS, member, parseStrict } from '@plat/core'
import type { StreamedBody } from '@plat/http'
import { type BatchRequests, type Denial, deny, isDenial } from '../../../call/index.ts'
import { NestedJson } from '../../wire/nested.ts'
import { isSet, wrong } from '../dialects/checks.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { ModelBody } from '../request.ts'
import type { Multipart, UploadedFile } from './read.ts'

/** The member of the JSON form that describes the files, which no field may have as its name. */
const FILES = 'files'
/** Fields whose text is for the model: it may be about JSON. */
const PLAIN_TEXTS: ReadonlySet<string> = new Set(['prompt', 'input', 'instructions'])
/** Names with one index or without; the same name twice is a list only with an empty index. */
const NAME = /^[a-z_]{1,64}(?:\[[a-z_]{0,64}\])*$/

/**
 * A multipart request. Policies, redaction and guards see it in its JSON form: an object of its fields, whose `files` names the files. What they
 * change there is sent; the bytes of the files are sent as they came.
 */
export class UploadBody extends ModelBody {
  readonly files: readonly UploadedFile[]
  readonly nested: JsonObject
  readonly batch?: BatchRequests

  constructor(
    parts: Pick<ModelBody, 'bytes' | 'value' | 'request' | 'dialect'> & { readonly nested: JsonObject },
    files: readonly UploadedFile[],
    batch?: BatchRequests,
  ) {
    super(parts)
    this.nested = parts.nested
    this.files = files
    if (batch !== undefined) this.batch = batch
  }

  /** The JSON form with the digests of the files, so that records and approvals are about these bytes. */
  override get args(): Uint8Array {
    const files = this.files.map(({ sha256 }, at) => ({ ...described(this.value, at), sha256 }))
    return Buffer.from(JSON.stringify({ ...this.value, [FILES]: files }))
  }

  get size(): number {
    return this.files.reduce((sum, { size }) => sum + size, this.bytes.byteLength)
  }

  /** Returns the request with another JSON form. */
  rewritten(bytes: Uint8Array): UploadBody | Denial {
    return bodyOf(bytes, this.dialect, this.files, this.batch)
  }

  /** Returns the request with another file, the requests in which were judged. */
  withBatch(file: UploadedFile, batch: BatchRequests): UploadBody {
    return new UploadBody(this, [file], batch)
  }

  /** The request as the provider gets it, with this model. */
  encoded(model: string | null, boundary: string): StreamedBody {
    const value = model === null ? this.value : { ...this.value, model }
    const pieces: (string | UploadedFile)[] = []
    for (const [name, one] of Object.entries(value)) {
      if (name === FILES) continue
      for (const text of Array.isArray(one) ? one : [one])
        pieces.push(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${String(text)}\r\n`)
    }
    for (const [at, file] of this.files.entries()) {
      const filename = safe(String(member(described(this.value, at), 'filename') ?? file.filename))
      const head = `Content-Disposition: form-data; name="${file.part}"; filename="${filename}"\r\nContent-Type: ${file.type}`
      pieces.push(`--${boundary}\r\n${head}\r\n\r\n`, file, '\r\n')
    }
    pieces.push(`--${boundary}--\r\n`)
    const parts = pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece))
    const length = parts.reduce((sum, part) => sum + (part instanceof Uint8Array ? part.length : part.size), 0)
    return { length, chunks: () => chunksOf(parts) }
  }
}

async function* chunksOf(parts: readonly (Uint8Array | UploadedFile)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    if (part instanceof Uint8Array) yield part
    else yield* part.read()
  }
}

function described(value: JsonObject, at: number): JsonObject {
  const files = value[FILES]
  const one: unknown = Array.isArray(files) ? files[at] : null
  return isObject(one) ? one : {}
}

/** A redacted name may hold characters that would end the quoted value. */
function safe(filename: string): string {
  return filename.replace(/["\\\r\n]/g, '_')
}

/** Returns the request of a multipart body, or what is wrong with it. */
export function uploadBody({ fields, files }: Multipart, dialect: Dialect): UploadBody | Denial {
  const value: { [name: string]: unknown } = {}
  /** Fields by their names before the first bracket: providers may read `n` and `n[]` as the same field. */
  const forms = new Map<string, 'plain' | 'brackets'>()
  for (const [name, text] of fields) {
    if (!NAME.test(name) || name === FILES || Object.hasOwn(Object.prototype, name))
      return wrong(name.slice(0, 64), 'is not a field of this request')
    const [base = ''] = name.split('[', 1)
    const form = name === base ? 'plain' : 'brackets'
    if (forms.get(base) !== undefined && forms.get(base) !== form)
      return wrong(name, 'is stated with brackets and without')
    forms.set(base, form)
    const before = value[name]
    if (name.endsWith('[]')) value[name] = Array.isArray(before) ? [...before, text] : [text]
    else if (isSet(before)) return wrong(name, 'is stated twice')
    else value[name] = text
  }
  value[FILES] = files.map(({ part, filename, type, size }) => ({ part, filename, type, size }))
  return bodyOf(Buffer.from(JSON.stringify(value)), dialect, files)
}

function bodyOf(
  bytes: Uint8Array,
  dialect: Dialect,
  files: readonly UploadedFile[],
  batch?: BatchRequests,
): UploadBody | Denial {
  let value: unknown
  try {
    value = parseStrict(bytes, MESSAGE_LIMITS)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return deny('invalid_request', `the fields of the body are too many or too deep: ${error.message}`)
  }
  if (!isObject(value)) return deny('invalid_request', 'the body has no fields')
  const fault = dialect.fault(value)
  if (fault !== null) return fault
  const nested = withParsedFields(value)
  if (isDenial(nested)) return nested
  const request = { ...dialect.request(bytes, value), images: null, openEnd: null, options: [] }
  return new UploadBody({ bytes, value, nested, request, dialect }, files, batch)
}

/** Parses fields that are JSON objects or lists: some providers read them like members of a JSON request. */
function withParsedFields(value: JsonObject): JsonObject | Denial {
  const json = new NestedJson()
  const nested: { [name: string]: unknown } = { ...value }
  for (const [name, one] of Object.entries(value)) {
    if (name === FILES || PLAIN_TEXTS.has(name)) continue
    const isList = Array.isArray(one)
    const parsed = (isList ? one : [one]).map((text) => (isJson(text) ? json.parse(text) : text))
    if (parsed.includes(undefined)) return wrong(name, 'is neither a text nor strict JSON')
    nested[name] = isList ? parsed : parsed[0]
  }
  return nested
}

function isJson(text: unknown): text is string {
  return typeof text === 'string' && /^[{[]/.test(text.trimStart())
}
