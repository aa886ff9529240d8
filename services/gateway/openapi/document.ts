import type { TSchema } from 'typebox'
import { type AdminRoute, type AdminRoutes, adminRoutes, type RouteRow } from '../admin/index.ts'
import { type Shape, shapes } from './shapes.ts'

/** Every refusal of the admin API has this form. */
const REFUSAL = {
  description: 'A refusal: its code, and one sentence that names the field and the fix.',
  content: {
    'application/json': {
      schema: {
        type: 'object',
        required: ['error', 'message', 'requestId'],
        properties: { error: { type: 'string' }, message: { type: 'string' }, requestId: { type: 'string' } },
      },
    },
  },
}

/** The admin API as an OpenAPI 3.1 document, from the table of its routes. */
export function openApiDocument(version: string): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const [route, row] of Object.entries(adminRoutes)) {
    if (!isRoute(route)) continue
    const [method = '', path = ''] = route.split(' ')
    const name = path.replaceAll(/\/:(\w+)/g, '/{$1}').replace(/\/\*$/, '/{path}')
    paths[name] = { ...paths[name], [method.toLowerCase()]: operationOf(route, row, shapes[route]) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'plat gateway: admin API',
      version,
      description: 'The API of a gateway for people and consoles. Lists are paginated; times are RFC 3339.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The listener of `adminListen`, else the main one.' }],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'PLAT_ADMIN_TOKEN, or a token of `adminAuth.oidc`.' },
      },
      responses: { Refusal: REFUSAL },
    },
  }
}

export function createOpenApi(version: string): { readonly routes: AdminRoutes } {
  const document = openApiDocument(version)
  return { routes: { mount: (context) => context.on('GET /openapi.json', async () => document) } }
}

function isRoute(name: string): name is AdminRoute {
  return Object.hasOwn(adminRoutes, name)
}

function operationOf(route: AdminRoute, row: RouteRow, shape: Shape): object {
  const parameters = [...pathParameters(route), ...queryParameters(shape)]
  return {
    operationId: operationId(route),
    tags: [tagOf(route)],
    summary: row.does,
    description: whoMay(row),
    ...(parameters.length > 0 && { parameters }),
    ...(shape.body !== undefined && { requestBody: bodyOf(shape.body, shape.bodyOptional !== true) }),
    responses: { ...answerOf(shape), default: { $ref: '#/components/responses/Refusal' } },
    security: row.needs === 'none' ? [] : [{ bearer: [] }],
  }
}

function whoMay({ needs, within }: RouteRow): string {
  if (needs === 'none') return 'Needs no token.'
  if (needs === 'person') return 'Needs a valid token.'
  return within === 'cluster'
    ? `Needs the role \`${needs}\` everywhere.`
    : `Needs the role \`${needs}\`; in one namespace it is enough for what is of that namespace.`
}

function pathParameters(route: AdminRoute): readonly object[] {
  const names = [...route.matchAll(/\/:(\w+)/g)].map(([, name]) => name)
  return [...names, ...(route.endsWith('/*') ? ['path'] : [])].map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
}

function queryParameters({ query = {} }: Shape): readonly object[] {
  return Object.entries(query).map(([name, schema]) => ({ name, in: 'query', required: false, schema }))
}

function bodyOf(body: TSchema | string, required: boolean): object {
  const content = typeof body === 'string' ? { [body]: {} } : { 'application/json': { schema: body } }
  return { required, content }
}

function answerOf({ answer, status, stream }: Shape): object {
  if (answer === null) return { 204: { description: 'Done.' } }
  const type = stream === true ? 'text/event-stream' : 'application/json'
  return { [status ?? 200]: { description: 'The answer.', content: { [type]: { schema: answer } } } }
}

/** `GET /v1/approvals/:id` is `getApprovalsId`. */
function operationId(route: AdminRoute): string {
  const [method = '', ...words] = route.replace('/v1/', '/').match(/[A-Za-z]+/g) ?? []
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

/** The first word of the path. */
function tagOf(route: AdminRoute): string {
  return /(?:\/v1)?\/(\w+)/.exec(route)?.[1] ?? ''
}
