import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/** The part of a JSON Schema that the document of the admin API uses. */
interface Schema {
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}

export function typesOf(document: {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}): string {
  const routes = Object.entries(document.paths).flatMap(([name, methods]) =>
    Object.entries(methods).map(([method, operation]) => routeOf(`${method.toUpperCase()} ${name}`, operation)),
  )
  return `// Generated from docs/reference/openapi.json by \`node apps/console/api/generate.ts\`. @table

/** Requests and responses of each route of the admin API. */
export interface Api {
${routes.join('\n')}
}
`
}

function routeOf(route: string, { parameters = [], requestBody, responses }: Operation): string {
  const [, response] = Object.entries(responses).find(([status]) => /^2/.test(status)) ?? []
  const named = (place: string, optional: string) =>
    `{ ${parameters
      .filter((one) => one.in === place)
      .map(({ name, schema }) => `readonly ${name}${optional}: ${typeOf(schema)}`)
      .join('; ')} }`
  return `  '${route}': {
    readonly params: ${named('path', '')}
    readonly query: ${named('query', '?')}
    readonly body: ${contentOf(requestBody?.content)}
    readonly result: ${contentOf(response?.content)}
  }`
}

function contentOf(content: Content | undefined): string {
  const schema = content?.['application/json']?.schema
  return schema === undefined ? 'undefined' : typeOf(schema)
}

/** A type of TypeScript for a schema; what a schema leaves open is unknown. */
function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(' | ')
  if (schema.type === 'array') return `readonly (${typeOf(schema.items ?? {})})[]`
  if (schema.type === 'integer') return 'number'
  if (schema.type === 'object') return objectOf(schema)
  return schema.type ?? 'unknown'
}

function objectOf({ properties = {}, patternProperties = {}, required = [] }: Schema): string {
  const members = Object.entries(properties).map(
    ([name, schema]) =>
      `readonly ${/^\w+$/.test(name) ? name : JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(schema)}`,
  )
  if (members.length > 0) return `{ ${members.join('; ')} }`
  const [value] = Object.values(patternProperties)
  return `{ readonly [name: string]: ${value === undefined ? 'unknown' : typeOf(value)} }`
}

/** The document, and the file of the types. */
export function typesOfRepository(): { readonly file: string; readonly text: string } {
  const document = path.resolve(import.meta.dirname, '../../../docs/reference/openapi.json')
  return {
    file: path.join(import.meta.dirname, 'types.ts'),
    text: typesOf(JSON.parse(readFileSync(document, 'utf8'))),
  }
}

if (import.meta.main) {
  const { file, text } = typesOfRepository()
  writeFileSync(file, text)
}
