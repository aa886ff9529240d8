import { API_TOOLS_MAX, type ApiTool } from '@plat/resources/rendered'
import { bodyOf, outputOf } from './content.ts'
import { type ApiDocument, DocumentError, quoted, readDocument } from './document.ts'
import { type AllowRule, type Operation, operationsOf, selected } from './operations.ts'
import { type Argument, argumentsOf, BODY_ARGUMENT } from './parameters.ts'
import { SchemaWriter } from './schema.ts'

const MAX_NAME_CHARS = 64
const MAX_TITLE_CHARS = 128
const MAX_DESCRIPTION_CHARS = 2048
/** Tools of one server as JSON: they are rendered into a file that all namespaces share. */
const MAX_TOOLS_BYTES = 1024 * 1024

/** A document and its settings. */
export interface CompileInput {
  readonly text: string
  readonly allow?: readonly AllowRule[] | undefined
  /** Headers that the gateway sends with its credential, in lower case. */
  readonly hidden: readonly string[]
}

/** The tools of a document. */
export interface Compiled {
  readonly tools: readonly ApiTool[]
  /** Allowed operations that cannot be tools, and why, one line each. */
  readonly skipped: readonly string[]
  /** Indexes of rules that match nothing. */
  readonly unmatched: readonly number[]
}

/** Makes tools of the allowed operations of a document. Returns a text with the problem if it cannot be used as a whole. */
export function compileDocument({ text, allow, hidden }: CompileInput): Compiled | string {
  try {
    const document = readDocument(text)
    const { operations, unmatched } = selected(operationsOf(document), allow)
    if (operations.length > API_TOOLS_MAX)
      return `has ${operations.length} allowed operations: a server has at most ${API_TOOLS_MAX} tools, so name fewer in openapi.allow`
    return { ...toolsOf(operations, document, new Set(hidden)), unmatched }
  } catch (error) {
    if (error instanceof DocumentError) return error.message
    throw error
  }
}

function toolsOf(
  operations: readonly Operation[],
  document: ApiDocument,
  hidden: ReadonlySet<string>,
): Pick<Compiled, 'tools' | 'skipped'> {
  const tools = new Map<string, ApiTool>()
  const skipped: string[] = []
  let bytes = 0
  for (const operation of operations) {
    const skip = (why: string) => skipped.push(`${operation.method} ${quoted(operation.path)} ${why}`)
    try {
      const tool = toolOf(operation, document, hidden)
      if (tools.has(tool.name)) skip(`has the same name ${tool.name} as another operation`)
      else tools.set(tool.name, tool)
      bytes += JSON.stringify(tool).length
    } catch (error) {
      if (!(error instanceof DocumentError)) throw error
      skip(error.message)
    }
    if (bytes > MAX_TOOLS_BYTES)
      throw new DocumentError(
        `gives tools of more than ${MAX_TOOLS_BYTES} bytes: name fewer operations in openapi.allow`,
      )
  }
  return { tools: [...tools.values()], skipped }
}

function toolOf(operation: Operation, document: ApiDocument, hidden: ReadonlySet<string>): ApiTool {
  const writer = new SchemaWriter(document, 'arguments')
  const parameters = argumentsOf(operation, document, writer, hidden)
  checkPath(operation.path, parameters)
  const body = bodyOf(operation.operation, document, writer)
  const members = parameters.map(({ parameter, schema }) => [parameter.argument, schema] as const)
  const required = parameters.filter((one) => one.required).map(({ parameter }) => parameter.argument)
  const inputSchema = writer.finish({
    type: 'object',
    properties: Object.fromEntries([...members, ...(body === null ? [] : [[BODY_ARGUMENT, body.schema] as const])]),
    ...((required.length > 0 || body?.required === true) && {
      required: [...required, ...(body?.required === true ? [BODY_ARGUMENT] : [])],
    }),
    additionalProperties: false,
  })
  const output = outputOf(operation.operation, document)
  return {
    name: nameOf(operation),
    ...wordsOf(operation),
    method: operation.method,
    path: operation.path,
    parameters: parameters.map(({ parameter }) => parameter),
    ...(body !== null && { body: body.body }),
    inputSchema,
    ...(output !== null && { outputSchema: output.outputSchema, ...(output.wrapped && { wrapped: true as const }) }),
  }
}

/** The `operationId`, or method and path, in the characters that clients accept. */
function nameOf({ operationId, method, path }: Operation): string {
  const name = operationId ?? `${method.toLowerCase()}${path.replaceAll(/[{}]/g, '')}`
  const usable = name.replaceAll(/[^A-Za-z0-9_.-]/g, '_').slice(0, MAX_NAME_CHARS)
  if (usable === '') throw new DocumentError('has an empty operationId')
  return usable
}

function wordsOf({ operation, method, path }: Operation): { title: string; description: string } {
  const { summary, description, deprecated } = operation
  const texts = [summary, description].filter((text) => typeof text === 'string' && text !== '')
  const [title = `${method} ${path}`] = texts
  const all = [...new Set(texts), ...(deprecated === true ? ['Deprecated.'] : [])]
  return {
    title: cut(String(title), MAX_TITLE_CHARS),
    description: cut(all.length > 0 ? all.join('\n\n') : `${method} ${path}`, MAX_DESCRIPTION_CHARS),
  }
}

/** Schemas count characters as API servers do, in code points; a cut in units of UTF-16 is never longer. */
function cut(text: string, maxChars: number): string {
  return text.slice(0, maxChars).toWellFormed()
}

/** Characters of a path (RFC 3986), and the names of its parameters. */
const PATH = /^\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2}|\{[^{}/?#\s]+\})*$/

/** A path is written with the values of its parameters, and leads nowhere else. Throws DocumentError. */
function checkPath(path: string, parameters: readonly Argument[]): void {
  if (path.length > 1024 || !PATH.test(path)) throw new DocumentError('has a path with characters that no URL has')
  const hasDots = path.split('/').some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))
  if (hasDots || path.includes('//')) throw new DocumentError('has a path with empty or dotted segments')
  const named = new Set([...path.matchAll(/\{([^{}]+)\}/g)].map(([, name]) => name))
  const declared = new Set(parameters.flatMap(({ parameter }) => (parameter.in === 'path' ? [parameter.name] : [])))
  const missing = [...named].find((name) => !declared.has(name ?? ''))
  if (missing !== undefined) throw new DocumentError(`has no parameter for {${missing}} of its path`)
  const extra = [...declared].find((name) => !named.has(name))
  if (extra !== undefined) throw new DocumentError(`has a path parameter ${quoted(extra)} that its path does not name`)
}
