import { isObject, type JsonObject } from '@plat/core'
import type { ApiTool } from '@plat/resources/rendered'
import { type ApiDocument, DocumentError } from './document.ts'
import { SchemaWriter, type WrittenSchema } from './schema.ts'

type Body = NonNullable<ApiTool['body']>

/** Media types of bodies that a tool can send, the preferred one first. */
const FORMS: readonly (readonly [Body['form'], RegExp])[] = [
  ['json', /^application\/(?:[a-z0-9.-]+\+)?json$/],
  ['form', /^application\/x-www-form-urlencoded$/],
  ['text', /^text\/plain$/],
]

/** The body of an operation; null if it has none. */
export interface BodyArgument {
  readonly body: Body
  readonly schema: WrittenSchema
  readonly required: boolean
}

/** Returns how the body of an operation is sent. Throws DocumentError if it needs one that cannot be sent. */
export function bodyOf(operation: JsonObject, document: ApiDocument, writer: SchemaWriter): BodyArgument | null {
  if (operation.requestBody === undefined) return null
  const { content, required } = document.resolve(operation.requestBody)
  const offered = isObject(content) ? Object.entries(content).map(([type, media]) => ({ ...typeOf(type), media })) : []
  for (const [form, pattern] of FORMS) {
    const found = offered.find(({ mediaType }) => pattern.test(mediaType))
    if (found === undefined) continue
    const schema = isObject(found.media) ? writer.write(found.media.schema) : true
    return {
      body: { form, mediaType: found.mediaType },
      schema: form === 'text' ? { type: 'string' } : schema,
      required: required === true,
    }
  }
  if (required !== true) return null
  throw new DocumentError('needs a body that is neither JSON nor a form nor plain text')
}

function typeOf(type: string): { readonly mediaType: string } {
  const [mediaType = ''] = type.split(';')
  return { mediaType: mediaType.trim().toLowerCase() }
}

/** The schema of structured content, and whether the answer is its member `result`. */
export interface Output {
  readonly outputSchema: { type: 'object' } & Record<string, unknown>
  readonly wrapped: boolean
}

/**
 * Returns the schema of successful answers; null if there is none that all of them have: clients refuse a result without structured content
 * where a tool has one.
 */
export function outputOf(operation: JsonObject, document: ApiDocument): Output | null {
  const responses = isObject(operation.responses) ? Object.entries(operation.responses) : []
  const successes = responses.filter(([status]) => /^2(?:\d\d|XX)$/i.test(status))
  const [only] = successes
  if (only === undefined || successes.length > 1) return null
  try {
    const { content } = document.resolve(only[1])
    const entries = isObject(content) ? Object.entries(content) : []
    const [entry] = entries
    if (entry === undefined || entries.length > 1 || FORMS[0]?.[1].test(typeOf(entry[0]).mediaType) !== true)
      return null
    const schema = isObject(entry[1]) ? entry[1].schema : undefined
    return schema === undefined ? null : written(schema, document)
  } catch (error) {
    // The operation can be called without: its answers are passed on as they are.
    if (error instanceof DocumentError) return null
    throw error
  }
}

function written(schema: unknown, document: ApiDocument): Output {
  const writer = new SchemaWriter(document, 'answer')
  const root = typeof schema === 'boolean' ? {} : document.resolve(schema)
  const direct = root.type === 'object' && root.nullable !== true ? writer.write(root) : true
  if (typeof direct !== 'boolean') return { outputSchema: writer.finish(direct), wrapped: false }
  const properties = { result: writer.write(schema) }
  return { outputSchema: writer.finish({ properties, required: ['result'] }), wrapped: true }
}
