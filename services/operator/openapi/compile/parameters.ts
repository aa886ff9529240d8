import { isObject, type JsonObject } from '@plat/core'
import { type ApiParameter, isWrittenHeader } from '@plat/resources/rendered'
import { type ApiDocument, DocumentError, quoted } from './document.ts'
import type { SchemaWriter, WrittenSchema } from './schema.ts'

const MAX_PARAMETERS = 64
const MAX_NAME_CHARS = 128

/** A parameter with its member of the tool's arguments. */
export interface Argument {
  readonly parameter: ApiParameter
  readonly schema: WrittenSchema
  readonly required: boolean
}

const PLACES = ['path', 'query', 'header', 'cookie'] as const
type Place = (typeof PLACES)[number]

export const BODY_ARGUMENT = 'body'

/** Names of headers and cookies (RFC 9110, section 5.1). */
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/

const STYLES: Readonly<Record<Place, ReadonlySet<unknown>>> = {
  path: new Set(['simple']),
  query: new Set(['form', 'spaceDelimited', 'pipeDelimited', 'deepObject']),
  header: new Set(['simple']),
  cookie: new Set(['form']),
}

/**
 * Returns the parameters of an operation, those of its path included, without those that a caller must not choose: headers of HTTP, of the
 * gateway, and of the credential (`hidden`, in lower case). Throws DocumentError.
 */
export function argumentsOf(
  { pathItem, operation }: { readonly pathItem: JsonObject; readonly operation: JsonObject },
  document: ApiDocument,
  writer: SchemaWriter,
  hidden: ReadonlySet<string>,
): readonly Argument[] {
  const byPlace = new Map<string, { place: Place; name: string; parameter: JsonObject }>()
  for (const node of [...listOf(pathItem.parameters), ...listOf(operation.parameters)]) {
    const parameter = document.resolve(node)
    const place = PLACES.find((one) => one === parameter.in)
    const { name } = parameter
    if (place === undefined || typeof name !== 'string' || name === '' || name.length > MAX_NAME_CHARS)
      throw new DocumentError('has a parameter without a usable name or place')
    byPlace.set(`${place} ${place === 'header' ? name.toLowerCase() : name}`, { place, name, parameter })
  }
  const chosen = [...byPlace.values()].filter(({ place, name }) => !isWithheld(place, name, hidden))
  if (chosen.length > MAX_PARAMETERS) throw new DocumentError(`has more than ${MAX_PARAMETERS} parameters`)
  const used = new Set<string>([BODY_ARGUMENT])
  return PLACES.flatMap((place) => chosen.filter((one) => one.place === place)).map(({ place, name, parameter }) => {
    const argument = used.has(name) ? `${place}_${name}`.slice(0, MAX_NAME_CHARS) : name
    if (used.has(argument)) throw new DocumentError(`has two parameters ${quoted(name)}`)
    used.add(argument)
    return argumentOf({ place, name, argument, parameter }, writer)
  })
}

function listOf(list: unknown): readonly unknown[] {
  return Array.isArray(list) ? list : []
}

function isWithheld(place: Place, name: string, hidden: ReadonlySet<string>): boolean {
  if (place === 'cookie' && !TOKEN.test(name))
    throw new DocumentError(`has a cookie ${quoted(name)}, which is not a name`)
  if (place !== 'header') return false
  if (!TOKEN.test(name)) throw new DocumentError(`has a header ${quoted(name)}, which is not a name`)
  const lower = name.toLowerCase()
  return isWrittenHeader(lower) || hidden.has(lower) || WITHHELD.test(lower)
}

/** Headers with credentials, and those in which proxies and the gateway name the caller. */
const WITHHELD =
  /^(?:authorization|cookie|forwarded|via|proxy-.*|sec-.*|x-forwarded-.*|x-real-ip|x-http-method.*|x-method-override|x-plat-.*|plat-.*)$/

function argumentOf(
  {
    place,
    name,
    argument,
    parameter,
  }: { readonly place: Place; readonly name: string; readonly argument: string; readonly parameter: JsonObject },
  writer: SchemaWriter,
): Argument {
  const { style: stated, explode, schema, content, description, required } = parameter
  const media = isObject(content) ? content['application/json'] : undefined
  const isJson = media !== undefined
  if (schema === undefined && !isJson && isObject(content))
    throw new DocumentError(`has a parameter ${quoted(name)} with content other than JSON`)
  const usual = place === 'query' || place === 'cookie' ? 'form' : 'simple'
  const style = stated === undefined ? usual : stated
  if (!isJson && !STYLES[place].has(style))
    throw new DocumentError(`has a parameter ${quoted(name)} of style ${quoted(String(style))}, which is not supported`)
  const written = writer.write(isJson && isObject(media) ? media.schema : schema)
  const described = typeof description === 'string' ? { description: description.slice(0, 1024).toWellFormed() } : {}
  return {
    parameter: {
      argument,
      name,
      in: place,
      style: isJson ? 'json' : styleOf(style),
      explode: typeof explode === 'boolean' ? explode : style === 'form' || style === 'deepObject',
      ...(place === 'path' && allowsSlash(name, parameter) && { allowSlash: true }),
    },
    schema: typeof written === 'boolean' ? described : { ...written, ...described },
    required: place === 'path' || required === true,
  }
}

const ALLOW_SLASH = 'x-plat-allow-slash'

function allowsSlash(name: string, { [ALLOW_SLASH]: allows = false }: JsonObject): boolean {
  if (typeof allows === 'boolean') return allows
  throw new DocumentError(`has a parameter ${quoted(name)} whose ${ALLOW_SLASH} is not true or false`)
}

const WRITTEN_STYLES = ['simple', 'form', 'spaceDelimited', 'pipeDelimited', 'deepObject'] as const

function styleOf(style: unknown): ApiParameter['style'] {
  return WRITTEN_STYLES.find((one) => one === style) ?? 'simple'
}
