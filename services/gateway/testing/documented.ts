import { readFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { isObject, type JsonObject } from '@plat/core'
import { closed, listening } from '@plat/testkit/local'
import { Check, Errors } from 'typebox/schema'

const REFERENCE = join(import.meta.dirname, '../../../docs/reference')
const MAX_ERROR_CHARACTERS = 300

interface Received {
  readonly headers: IncomingHttpHeaders | Headers
  readonly text: string
}

/** An operation of a document. */
interface Operation {
  readonly id: string
  readonly method: string
  readonly path: RegExp
  readonly about: JsonObject
}

/** A server in front of another one, which compares each request and each response with an OpenAPI document. */
export interface DocumentedServer {
  readonly url: string
  /** Differences from the document. */
  readonly problems: readonly string[]
  /** Responses of the document that have not been seen, as `<operation> <status>`. */
  unseen(): readonly string[]
}

/** Starts it for a document of `docs/reference`. `base`: path of the server that the paths of the document are below. */
export async function documented(t: TestContext, name: string, target: string, base = ''): Promise<DocumentedServer> {
  const document: JsonObject = JSON.parse(readFileSync(join(REFERENCE, name), 'utf8'))
  const operations = operationsOf(document, base)
  const problems: string[] = []
  const seen = new Set<string>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', url = '/', headers } = request
    const text = Buffer.concat(chunks).toString('utf8')
    const { pathname, searchParams } = new URL(url, target)
    const operation = operations.find((one) => one.method === method && one.path.test(pathname))
    const forwarded = {
      ...(headers.authorization && { authorization: headers.authorization }),
      'content-type': 'application/json',
    }
    const context = headers['x-context-id']
    const reply = await fetch(new URL(url, target), {
      method,
      headers: { ...forwarded, ...(typeof context === 'string' && { 'x-context-id': context }) },
      ...(text !== '' && { body: text }),
    })
    const answer = await reply.text()
    if (operation === undefined) problems.push(`${method} ${pathname} is not in the document`)
    else {
      const key = `${operation.id} ${reply.status}`
      seen.add(key)
      // A request that the server refuses as invalid may differ from the document.
      if (reply.status !== 400)
        problems.push(...requestProblems(operation, { headers, text }, searchParams).map((one) => `${key}: ${one}`))
      problems.push(
        ...responseProblems(operation, reply.status, { headers: reply.headers, text: answer }).map(
          (one) => `${key}: ${one}`,
        ),
      )
    }
    const status = reply.headers.get('x-context-status')
    const type = reply.headers.get('content-type') ?? 'application/json'
    response.writeHead(reply.status, { 'content-type': type, ...(status !== null && { 'x-context-status': status }) })
    response.end(answer)
  })
  const port = await listening(server)
  t.after(() => closed(server))
  const all = operations.flatMap(({ id, about }) =>
    Object.keys(Object(about.responses)).map((status) => `${id} ${status}`),
  )
  return { url: `http://127.0.0.1:${port}`, problems, unseen: () => all.filter((one) => !seen.has(one)) }
}

function operationsOf(document: JsonObject, base: string): readonly Operation[] {
  return Object.entries(Object(document.paths)).flatMap(([path, methods]) =>
    Object.entries(Object(methods)).map(([method, about]) => {
      const whole: JsonObject = Object(resolved(document, about))
      const pattern = `^${base}${path.replaceAll(/\{\w+\}/g, '([^/]+)')}$`
      return { id: String(whole.operationId), method: method.toUpperCase(), path: new RegExp(pattern), about: whole }
    }),
  )
}

/** Replaces references by what they name. The documents have no circles. */
function resolved(document: JsonObject, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => resolved(document, one))
  if (!isObject(value)) return value
  const { $ref } = value
  if (typeof $ref === 'string') {
    const named = $ref
      .slice(2)
      .split('/')
      .reduce((inner: unknown, key) => Object(inner)[key], document)
    return resolved(document, named)
  }
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, resolved(document, inner)]))
}

function requestProblems({ about }: Operation, { headers, text }: Received, query: URLSearchParams): readonly string[] {
  const problems: string[] = []
  const parameters = Array.isArray(about.parameters) ? about.parameters : []
  for (const { name, in: place, required, schema } of parameters) {
    const given = place === 'query' ? query.get(name) : place === 'header' ? Object(headers)[name] : undefined
    if (place === 'path') continue
    if (given === null || given === undefined) {
      if (required === true) problems.push(`${name} is missing`)
    } else problems.push(...schemaProblems(schema, schema.type === 'integer' ? Number(given) : given, name))
  }
  const known = new Set(parameters.filter(({ in: place }) => place === 'query').map(({ name }) => name))
  for (const name of query.keys()) if (!known.has(name)) problems.push(`the query ${name} is not in the document`)
  const body = Object(about.requestBody)
  if (body.content !== undefined) problems.push(...contentProblems(body.content, 'application/json', text))
  return problems
}

function responseProblems({ about }: Operation, status: number, { headers, text }: Received): readonly string[] {
  const response = Object(about.responses)[String(status)]
  if (response === undefined) return ['the status is not in the document']
  const type = headers instanceof Headers ? (headers.get('content-type') ?? '') : ''
  const problems = response.content === undefined ? [] : [...contentProblems(response.content, type, text)]
  for (const [name, { schema }] of Object.entries<{ schema: JsonObject }>(response.headers ?? {}))
    problems.push(...schemaProblems(schema, headers instanceof Headers ? headers.get(name) : null, name))
  return problems
}

function contentProblems(content: JsonObject, type: string, text: string): readonly string[] {
  const media = Object(content[type.split(';', 1)[0] ?? ''])
  if (media.schema === undefined) return [`the type ${type} is not in the document`]
  try {
    return schemaProblems(media.schema, type.startsWith('application/json') ? JSON.parse(text) : text, 'the body')
  } catch {
    return ['the body is not JSON']
  }
}

function schemaProblems(schema: JsonObject, value: unknown, what: string): readonly string[] {
  if (Check(schema, value)) return []
  return [`${what}: ${JSON.stringify(Errors(schema, value)).slice(0, MAX_ERROR_CHARACTERS)}`]
}
