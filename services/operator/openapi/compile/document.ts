import { isObject, JsonError, type JsonObject, parseStrict } from '@plat/core'
import { readYaml } from '@plat/kubernetes'

/** Largest document in JSON and in YAML, in bytes: a parser of YAML needs a hundred times as long. */
const JSON_MAX_BYTES = 8 * 1024 * 1024
const YAML_MAX_BYTES = 1024 * 1024
/** Deepest nesting of a document. */
const MAX_DEPTH = 128
/** References that are followed in a row. */
const MAX_HOPS = 16

/** Why a document, or a part of it, cannot be used. The message is for people. */
export class DocumentError extends Error {
  constructor(why: string) {
    super(why)
    this.name = 'DocumentError'
  }
}

/** An OpenAPI document whose references lead into itself. */
export interface ApiDocument {
  readonly paths: JsonObject
  /** 3.0 has a dialect of JSON Schema. */
  readonly is30: boolean
  /** Returns the object that a reference leads to, or the object itself if it is none. Throws DocumentError. */
  resolve(node: unknown): JsonObject
  /** Returns the value at a reference such as `#/components/schemas/Pet`. Throws DocumentError. */
  at(reference: string): unknown
}

/** Parses a document of OpenAPI 3.0 or 3.1, JSON or YAML. Throws DocumentError. */
export function readDocument(text: string): ApiDocument {
  const root = parsed(text)
  if (!isObject(root)) throw new DocumentError('is not an OpenAPI document: it is not an object')
  const { openapi, swagger, paths } = root
  if (typeof swagger === 'string') throw new DocumentError('is Swagger 2.0: convert it to OpenAPI 3')
  if (typeof openapi !== 'string' || !/^3\.[01]\.\d+$/.test(openapi))
    throw new DocumentError('is not an OpenAPI document of version 3.0 or 3.1')
  if (!isObject(paths)) throw new DocumentError('has no paths')
  const at = (reference: string) => valueAt(root, reference)
  return { paths, is30: openapi.startsWith('3.0'), at, resolve: (node) => resolved(node, at) }
}

function parsed(text: string): unknown {
  if (/^\s*\{/.test(text)) return parsedJson(text)
  if (Buffer.byteLength(text) > YAML_MAX_BYTES)
    throw new DocumentError(`has more than ${YAML_MAX_BYTES} bytes of YAML: convert it to JSON`)
  const { value, problems } = readYaml(text)
  const [first] = problems
  if (first !== undefined) throw new DocumentError(`is not valid YAML in line ${first.line}: ${first.message}`)
  checkDepth(value)
  return value
}

function parsedJson(text: string): unknown {
  if (Buffer.byteLength(text) > JSON_MAX_BYTES) throw new DocumentError(`has more than ${JSON_MAX_BYTES} bytes`)
  try {
    return parseStrict(text, { maxDepth: MAX_DEPTH })
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    const line = Buffer.from(text).subarray(0, error.offset).toString().split('\n').length
    throw new DocumentError(`is not strict JSON in line ${line}: ${error.message}`)
  }
}

/** The parser of YAML accepts deeper nesting than that of JSON. */
function checkDepth(value: unknown): void {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw new DocumentError(`is nested deeper than ${MAX_DEPTH} levels`)
    level = level
      .filter((node) => typeof node === 'object' && node !== null)
      .flatMap((node) => (Array.isArray(node) ? node : Object.values(node)))
  }
}

function resolved(node: unknown, at: ApiDocument['at']): JsonObject {
  let found = node
  for (let hops = 0; hops <= MAX_HOPS; hops++) {
    if (!isObject(found)) throw new DocumentError('has something else where an object belongs')
    if (typeof found.$ref !== 'string') return found
    found = at(found.$ref)
  }
  throw new DocumentError('has references that lead in a circle')
}

function valueAt(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#/'))
    throw new DocumentError(`refers to ${quoted(reference)}: only references within the document are followed`)
  let found = root
  for (const step of reference.slice('#/'.length).split('/')) {
    const name = unescaped(step)
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name))
      throw new DocumentError(`refers to ${quoted(reference)}, which does not exist`)
    found = Reflect.get(found, name)
  }
  return found
}

/** A step of a JSON pointer in a URI fragment (RFC 6901, section 6). */
function unescaped(step: string): string {
  try {
    return decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return step
  }
}

const QUOTED_MAX_CHARS = 80

/** Returns a text of the document for a message. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > QUOTED_MAX_CHARS ? `${text.slice(0, QUOTED_MAX_CHARS)}…` : text)
}
