import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CompileInput, compileDocument } from './compile.ts'

type Rules = CompileInput['allow']

const response = (schema?: object) => ({
  responses: { 200: { description: '', ...(schema && { content: { 'application/json': { schema } } }) } },
})

const documentOf = (paths: object, more: object = {}) =>
  JSON.stringify({ openapi: '3.1.0', info: { title: 'a', version: '1' }, paths, ...more })

function compiled(text: string, allow?: Rules, hidden: readonly string[] = []) {
  const result = compileDocument({ text, allow, hidden })
  return typeof result === 'string' ? assert.fail(result) : result
}

function onlyTool(operation: object, more: object = {}, path = '/a') {
  const all: Rules = [{ path: '*', methods: ['GET', 'POST'] }]
  const { tools, skipped } = compiled(documentOf({ [path]: operation }, more), all)
  assert.deepEqual(skipped, [])
  return tools[0] ?? assert.fail('no tool')
}

const pets = documentOf({
  '/pets': {
    get: { operationId: 'listPets', tags: ['pets'], ...response() },
    post: { operationId: 'addPet', tags: ['pets'], ...response() },
  },
  '/pets/{id}': {
    parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
    delete: { operationId: 'removePet', tags: ['pets'], ...response() },
  },
  '/health': { get: { ...response() }, head: { ...response() } },
})

test('without rules every GET is allowed, and a rule allows writing only by a full operationId or by methods', () => {
  const names = (allow?: Rules) => compiled(pets, allow).tools.map(({ name }) => name)
  assert.deepEqual(names(), ['listPets', 'get_health'])
  assert.deepEqual(names([{ tag: 'pets' }]), ['listPets'])
  assert.deepEqual(names([{ path: '/pets*' }]), ['listPets'])
  assert.deepEqual(names([{ operationId: '*Pet*' }]), ['listPets'])
  assert.deepEqual(names([{ operationId: 'removePet' }]), ['removePet'])
  assert.deepEqual(names([{ operationId: '*Pet', methods: ['DELETE', 'POST'] }]), ['addPet', 'removePet'])
  assert.deepEqual(names([{ tag: 'pets', path: '/pets', methods: ['POST'] }]), ['addPet'])
  assert.deepEqual(compiled(pets, [{ tag: 'dogs' }, { tag: 'pets' }]).unmatched, [0])
})

test('a document that cannot be used as a whole is refused with the reason', () => {
  const problem = (text: string, allow?: Rules) => {
    const result = compileDocument({ text, allow, hidden: [] })
    return typeof result === 'string' ? result : assert.fail('it is accepted')
  }
  assert.equal(problem('{"swagger":"2.0"}'), 'is Swagger 2.0: convert it to OpenAPI 3')
  assert.equal(problem('{"openapi":"3.2.0","paths":{}}'), 'is not an OpenAPI document of version 3.0 or 3.1')
  assert.equal(problem('{"openapi":"3.1.0"}'), 'has no paths')
  assert.match(problem('{"openapi":"3.1.0",\n"a":1,"a":2}'), /^is not strict JSON in line 2: /)
  assert.match(problem('openapi: 3.1.0\npaths: ['), /^is not valid YAML in line 2: /)
  assert.match(problem('- a'), /not an object/)
  assert.match(problem(`{"a":${'['.repeat(500)}`), /^is not strict JSON/)
  assert.match(problem(`{"openapi":"3.1.0","x":${'{"a":'.repeat(150)}1${'}'.repeat(151)}`), /nested/)
  assert.match(problem(`openapi: 3.1.0\npaths: {}\nx: ${'['.repeat(150)}${']'.repeat(150)}`), /nested deeper than 128/)
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`/p${at}`, { get: response() }]))
  assert.match(problem(documentOf(many)), /^has 300 allowed operations: a server has at most 256 tools/)
})

test('only a parameter of a path that says so allows slashes', () => {
  const parameter = (name: string, place: string, more: object = {}) => ({ name, in: place, required: true, ...more })
  const withSlash = (one: unknown, place = 'path') => parameter('a', place, { 'x-plat-allow-slash': one })
  const allowed = (...parameters: object[]) =>
    onlyTool({ get: { parameters, ...response() } }, {}, '/{a}/{b}').parameters.map((one) => one.allowSlash)
  assert.deepEqual(allowed(withSlash(true), parameter('b', 'path', { allowReserved: true })), [true, undefined])
  assert.deepEqual(allowed(withSlash(false), parameter('b', 'path')), [undefined, undefined])
  assert.deepEqual(onlyTool({ get: { parameters: [withSlash(true, 'query')], ...response() } }).parameters, [
    { argument: 'a', name: 'a', in: 'query', style: 'form', explode: true },
  ])
  const { skipped } = compiled(documentOf({ '/{a}': { get: { parameters: [withSlash('true')], ...response() } } }))
  assert.match(JSON.stringify(skipped), /has a parameter \\"a\\" whose x-plat-allow-slash is not true or false/)
})

test('YAML and JSON give the same tools', () => {
  const yaml =
    'openapi: 3.1.0\npaths:\n  /a:\n    get: {operationId: a, summary: Text, responses: {"200": {description: x}}}\n'
  const json = documentOf({ '/a': { get: { operationId: 'a', summary: 'Text', ...response() } } })
  assert.deepEqual(compiled(yaml), compiled(json))
})

test('references become definitions, so that cycles and repetition do not grow', () => {
  const schemas = {
    Node: { type: 'object', properties: { next: { $ref: '#/components/schemas/Node' }, a: { $ref: '#/x/a~1b' } } },
    ...Object.fromEntries(
      Array.from({ length: 40 }, (_, at) => [
        `S${at}`,
        { anyOf: [1, 2].map(() => ({ $ref: `#/components/schemas/S${at + 1}` })) },
      ]),
    ),
    S40: { type: 'string' },
  }
  const body = (name: string) => ({
    requestBody: { content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } } },
    ...response(),
  })
  const more = { components: { schemas }, x: { 'a/b': { type: 'integer' } } }
  const { inputSchema } = onlyTool({ post: body('Node') }, more)
  assert.deepEqual(Object(inputSchema).properties.body, { $ref: '#/$defs/Node' })
  assert.deepEqual(Object(inputSchema).$defs, {
    Node: { type: 'object', properties: { next: { $ref: '#/$defs/Node' }, a: { $ref: '#/$defs/a_1b' } } },
    a_1b: { type: 'integer' },
  })
  assert.ok(JSON.stringify(onlyTool({ post: body('S0') }, more)).length < 8192)
})

test('an operation that cannot be a tool is skipped with its reason, and the others stay', () => {
  const reason = (operation: object, path = '/a', more: object = {}) => {
    const text = documentOf({ [path]: operation, '/ok': { get: response() } }, more)
    const { tools, skipped } = compiled(text, [{ path: '*', methods: ['GET', 'POST'] }])
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['get_ok'],
    )
    return skipped[0] ?? assert.fail('nothing is skipped')
  }
  const get = (parameter: object) => ({ get: { parameters: [parameter], ...response() } })
  const schema = (one: object) => get({ name: 'q', in: 'query', schema: one })
  assert.match(reason(schema({ $ref: 'https://evil.example/a.json' })), /only references within the document/)
  assert.match(reason(schema({ $ref: '#/nothing' })), /refers to "#\/nothing", which does not exist/)
  assert.match(reason(schema({ $ref: '#/constructor' })), /does not exist/)
  assert.match(reason(schema({ enum: Array.from({ length: 2000 }, (_, at) => at) })), /enum of more than 1024/)
  assert.match(
    reason(schema({ description: 'x', anyOf: Array.from({ length: 999 }, () => ({ title: 'x'.repeat(100) })) })),
    /schema of more than 65536 bytes/,
  )
  assert.match(reason(get({ $ref: '#/loop' }), '/a', { loop: { $ref: '#/loop' } }), /lead in a circle/)
  assert.match(reason(get({ name: 'q', in: 'query', style: 'matrix' })), /style "matrix"/)
  assert.match(reason(get({ name: 'a\r\nb', in: 'header' })), /which is not a name/)
  assert.match(reason({ get: response() }, '/a/{id}'), /no parameter for \{id\}/)
  for (const path of ['/a/../b', '/a/%2e%2E/b', '//evil.example/a', '/a?b', '/a b'])
    assert.match(reason({ get: response() }, path), /path with/, path)
  const upload = { requestBody: { required: true, content: { 'multipart/form-data': {} } }, ...response() }
  assert.match(reason({ post: upload }), /neither JSON nor a form nor plain text/)
})

test('callers choose no header of HTTP, of the gateway or of the credential', () => {
  const header = (name: string) => ({ name, in: 'header', schema: { type: 'string' } })
  const names = ['Authorization', 'Host', 'Cookie', 'X-Plat-Refusals', 'X-Forwarded-For', 'X-Api-Key', 'X-Request-Id']
  const text = documentOf({ '/a': { get: { parameters: names.map(header), ...response() } } })
  const { tools } = compiled(text, undefined, ['x-api-key'])
  assert.deepEqual(
    tools[0]?.parameters.map(({ name }) => name),
    ['X-Request-Id'],
  )
})

test('parameters with one name in several places are different arguments', () => {
  const parameters = ['path', 'query', 'cookie'].map((place) => ({ name: 'id', in: place, required: true, schema: {} }))
  const body = { name: 'body', in: 'query', schema: {} }
  const tool = onlyTool({ get: { parameters: [...parameters, body], ...response() } }, {}, '/a/{id}')
  assert.deepEqual(Object(tool.inputSchema).required, ['id', 'query_id', 'cookie_id'])
  assert.deepEqual(Object.keys(Object(tool.inputSchema).properties), ['id', 'query_id', 'query_body', 'cookie_id'])
})

test('schemas of 3.0 become those of JSON Schema', () => {
  const schema = { type: 'integer', nullable: true, minimum: 1, exclusiveMinimum: true, enum: [2, 3] }
  const text = JSON.stringify({
    openapi: '3.0.1',
    paths: { '/a': { get: { parameters: [{ name: 'q', in: 'query', schema }], ...response() } } },
  })
  const written = Object(compiled(text).tools[0]?.inputSchema).properties.q
  assert.deepEqual(written, { type: ['integer', 'null'], exclusiveMinimum: 1, enum: [2, 3, null] })
})

test('only what all successful answers have is an output schema', () => {
  const list = onlyTool({ get: response({ type: 'array', items: { type: 'string', pattern: 'a' } }) })
  assert.equal(list.wrapped, true)
  assert.deepEqual(Object(list.outputSchema).properties, { result: { type: 'array', items: { type: 'string' } } })
  const hidden = {
    type: 'object',
    required: ['a', 'b'],
    properties: { a: { writeOnly: true }, b: {} },
    additionalProperties: false,
  }
  assert.deepEqual(onlyTool({ get: response(hidden) }).outputSchema, {
    type: 'object',
    required: ['b'],
    properties: { b: {} },
  })
  const two = { get: { responses: { ...response({ type: 'object' }).responses, 204: { description: '' } } } }
  assert.equal(onlyTool(two).outputSchema, undefined)
})
