import { type Static, Type } from 'typebox'

const closed = { additionalProperties: false } as const

/** Most tools of one API. */
export const API_TOOLS_MAX = 256

/** A JSON Schema: at least an object. */
const jsonSchemaObject = () => Type.Object({ type: Type.Literal('object') })

/** How an argument of a tool is written into a request (OpenAPI: `in`, `style`, `explode`). */
const apiParameterSchema = Type.Object(
  {
    /** The member of the arguments. */
    argument: Type.String({ minLength: 1, maxLength: 128 }),
    name: Type.String({ minLength: 1, maxLength: 128 }),
    in: Type.Enum(['path', 'query', 'header', 'cookie'], { type: 'string' }),
    style: Type.Enum(['simple', 'form', 'spaceDelimited', 'pipeDelimited', 'deepObject', 'json'], { type: 'string' }),
    explode: Type.Boolean(),
    /** A value in the path may have slashes, which are written as `%2F` (`x-plat-allow-slash`). */
    allowSlash: Type.Optional(Type.Literal(true)),
  },
  closed,
)

/** A tool that calls one operation of an HTTP API below the `url` of its server. */
export const apiToolSchema = Type.Object(
  {
    name: Type.String({ pattern: '^[A-Za-z0-9_.-]{1,64}$' }),
    title: Type.String({ maxLength: 128 }),
    description: Type.String({ maxLength: 2048 }),
    method: Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], { type: 'string' }),
    /** With `{name}` for path parameters. */
    path: Type.String({ pattern: '^/[^?#\\s]*$', maxLength: 1024 }),
    parameters: Type.Array(apiParameterSchema, { maxItems: 64 }),
    /** How the argument `body` is written. */
    body: Type.Optional(
      Type.Object(
        {
          form: Type.Enum(['json', 'form', 'text'], { type: 'string' }),
          mediaType: Type.String({ pattern: '^[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}$' }),
        },
        closed,
      ),
    ),
    inputSchema: jsonSchemaObject(),
    outputSchema: Type.Optional(jsonSchemaObject()),
    /** The answer is the member `result` of the structured content, since it is not an object. */
    wrapped: Type.Optional(Type.Literal(true)),
  },
  closed,
)

export type ApiTool = Static<typeof apiToolSchema>
export type ApiParameter = ApiTool['parameters'][number]
