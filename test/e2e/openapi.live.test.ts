import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { startUp, type Up } from '@plat/cli'
import { wholeLines } from '@plat/testkit/ledger'
import { listening, tempFolder } from '@plat/testkit/local'
import { denialOf } from '@plat/testkit/mcp/denial'
import { until } from '@plat/testkit/until'

const ADMIN_DOCUMENT = fileURLToPath(new URL('../../docs/reference/openapi.json', import.meta.url))

const dir = tempFolder()
let up: Up
let api: Awaited<ReturnType<typeof startApi>>

const document = {
  openapi: '3.0.3',
  info: { title: 'Pets', version: '1' },
  servers: [{ url: 'http://elsewhere.example/' }],
  paths: {
    '/pets/{id}': {
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }],
      get: {
        operationId: 'getPet',
        summary: 'One pet.',
        parameters: [{ name: 'tags', in: 'query', schema: { type: 'array', items: { type: 'string' } } }],
        responses: {
          200: { description: '', content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } } },
        },
      },
      delete: { operationId: 'deletePet', responses: { 204: { description: '' } } },
    },
    '/pets': {
      post: {
        operationId: 'addPet',
        requestBody: {
          required: true,
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
        },
        responses: { 201: { description: '' } },
      },
    },
    '/picture': { get: { operationId: 'picture', responses: { 200: { description: '' } } } },
    '/search': {
      get: {
        operationId: 'search',
        parameters: [
          { name: 'account', in: 'query', schema: { type: 'string' } },
          { name: 'filter', in: 'query', schema: { type: 'object', additionalProperties: { type: 'string' } } },
        ],
        responses: { 200: { description: '' } },
      },
    },
    '/projects/{project}/files/{file}': {
      get: {
        operationId: 'getFile',
        parameters: [
          { name: 'project', in: 'path', required: true, schema: { type: 'string' }, 'x-plat-allow-slash': true },
          { name: 'file', in: 'path', required: true, schema: { type: 'string' } },
        ],
        responses: { 200: { description: '' } },
      },
    },
    '/away': { get: { operationId: 'away', responses: { 200: { description: '' } } } },
  },
  components: {
    schemas: {
      Pet: {
        type: 'object',
        required: ['id', 'name'],
        properties: {
          id: { type: 'integer', readOnly: true },
          name: { type: 'string', minLength: 2 },
          parent: { $ref: '#/components/schemas/Pet' },
        },
      },
    },
  },
}

/** An HTTP API that records what it receives. */
async function startApi() {
  const requests: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] = []
  const reply = (response: ServerResponse, status: number, type: string, body: string | Buffer) =>
    response.writeHead(status, { 'content-type': type, location: '/pets/1' }).end(body)
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request
    const body = Buffer.concat(await request.toArray()).toString()
    requests.push({ method, url, headers, body })
    if (url === '/v1/openapi.json') return reply(response, 200, 'application/json', JSON.stringify(document))
    if (url === '/v1/picture') return reply(response, 200, 'image/png', Buffer.from([0x89, 0x50]))
    if (url === '/v1/away') return reply(response, 302, 'text/plain', '')
    if (url === '/v1/pets/404') return reply(response, 404, 'application/json', '{"detail":"no pet 404"}')
    if (url === '/v1/pets/7') return reply(response, 200, 'application/json', '{"id":7,"name":7}')
    if (method === 'POST') return reply(response, 201, 'application/json', body)
    if (method === 'DELETE') return response.writeHead(204).end()
    return reply(response, 200, 'application/json', '{"id":9007199254740993,"name":"Rex","mail":"ada@example.com"}')
  })
  const port = await listening(server)
  return { url: `http://127.0.0.1:${port}/v1`, requests, close: () => server.close() }
}

before(async () => {
  api = await startApi()
  await put('Agent/agents', 'assistant', {
    image: 'example.com/a:1',
    tier: 'tier-0',
    policyRef: 'all',
    tools: [{ name: 'pets' }, { name: 'remote' }, { name: 'admin' }],
  })
  await put('ToolPolicy/toolpolicies', 'all', {
    rules: [
      { name: 'all', action: 'allow' },
      { name: 'no', action: 'deny', match: { tools: ['deletePet'] }, reason: 'pets stay' },
      { name: 'mine', action: 'deny', when: "has(args.account) && args.account != 'mine'", reason: 'not yours' },
      { name: 'thirteen', action: 'deny', when: 'has(args.id) && args.id == 13', reason: 'not this one' },
    ],
  })
  await write('pets.openapi.json', JSON.stringify(document))
  await write('.plat/secrets/default/pets/token', 'hunter2-hunter2\n')
  await put('MCPServer/mcpservers', 'pets', {
    url: api.url,
    openapi: { file: 'pets.openapi.json', allow: [{ path: '/*', methods: ['GET', 'POST', 'DELETE'] }] },
    auth: { type: 'bearerSecret', secretRef: { name: 'pets', key: 'token' } },
    toolPins: { mode: 'learn' },
    dlpProfile: 'mails',
  })
  await put('MCPServer/mcpservers', 'remote', { url: api.url, openapi: { documentURL: `${api.url}/openapi.json` } })
  const dlpProfiles = { mails: { detectors: ['email'] } }
  await write('gateway.json', JSON.stringify({ policyReloadSeconds: 1, dlpProfiles }))
  up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
})

after(async () => {
  api.close()
  await up.stop()
})

async function write(path: string, text: string): Promise<void> {
  const file = join(dir, path)
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writeFile(file, text)
}

function put(kind: string, name: string, spec: object): Promise<void> {
  const [one = '', many = ''] = kind.split('/')
  const metadata = { name, namespace: 'default' }
  return write(
    `resources/${many}/default/${name}.yaml`,
    JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind: one, metadata, spec }),
  )
}

/** Connects to a server; an empty name is the address of all servers. */
async function client(name: string): Promise<Client> {
  const response = await fetch(`${up.env.PLAT_IDENTITY_URL}/v1/token`, {
    method: 'POST',
    headers: { authorization: `Bearer ${up.env.PLAT_BROKER_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ namespace: 'default', agent: 'assistant', session: 'a', user: 'ada', tier: 'tier-0', ttlSeconds: 600 },
      scopes: ['tools:pets', 'tools:remote', 'tools:admin'],
    }),
  })
  const { token } = Object(await response.json())
  const one = new Client({ name: 'test', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await one.connect(
    new StreamableHTTPClientTransport(new URL(`${up.env.PLAT_GATEWAY_URL}/mcp${name === '' ? '' : `/${name}`}`), {
      requestInit,
    }),
  )
  return one
}

type Result = Awaited<ReturnType<Client['callTool']>>

function textOf({ content: [first] }: Result): string {
  return first?.type === 'text' ? first.text : ''
}

test('operations are tools with schemas, and only those that are allowed', async () => {
  // Shows D2.server.openapi, D2.server.openapi.allow, D2.server.openapi.documentURL and D2.server.openapi.file.
  const pets = await client('pets')
  const { tools } = await pets.listTools()
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['getPet', 'addPet', 'picture', 'search', 'getFile', 'away'],
  )
  const [get, add] = tools
  assert.deepEqual(get?.inputSchema.required, ['id'])
  assert.deepEqual([get?.title, get?.description, get?.annotations?.readOnlyHint], ['One pet.', 'One pet.', true])
  assert.ok(get?.outputSchema !== undefined)
  assert.equal(add?.annotations?.readOnlyHint, false)
  assert.ok(!JSON.stringify(add?.inputSchema).includes('"id"'), 'read-only members are not arguments')
  await pets.close()
  // Without rules only operations that read are tools.
  const remote = await client('remote')
  const names = (await remote.listTools()).tools.map(({ name }) => name)
  assert.deepEqual(names, ['getPet', 'picture', 'search', 'getFile', 'away'])
  await remote.close()
})

test('a call is one request with the credential, and its answer is redacted, structured and recorded', async () => {
  const pets = await client('pets')
  await pets.listTools()
  api.requests.length = 0
  const result = await pets.callTool({ name: 'getPet', arguments: { id: 5, tags: ['a b', 'c&d=e'] } })
  const [request] = api.requests
  assert.deepEqual([request?.method, request?.url], ['GET', '/v1/pets/5?tags=a%20b&tags=c%26d%3De'])
  assert.equal(request?.headers.authorization, 'Bearer hunter2-hunter2')
  assert.match(textOf(result), /9007199254740993.*Rex/)
  assert.ok(!JSON.stringify(result).includes('ada@example.com'), 'the answer is redacted')
  assert.equal(Object(result.structuredContent).name, 'Rex')
  await pets.callTool({ name: 'addPet', arguments: { body: { name: 'Bo' } } })
  assert.deepEqual(
    [api.requests[1]?.body, api.requests[1]?.headers['content-type']],
    ['{"name":"Bo"}', 'application/json'],
  )
  const records = () => wholeLines(join(up.home.state, 'audit.jsonl')).join('\n')
  await until(() => records().includes('getPet') && records().includes(new URL(api.url).origin), 'the record')
  assert.ok(!records().includes('hunter2'))
  await pets.close()
})

test('policy decides on tools and arguments, and a denied call reaches no API', async () => {
  const pets = await client('pets')
  api.requests.length = 0
  const no = await pets.callTool({ name: 'deletePet', arguments: { id: 1 } })
  assert.equal(denialOf({ result: no }).message, 'pets stay')
  const thirteen = await pets.callTool({ name: 'getPet', arguments: { id: 13 } })
  assert.equal(denialOf({ result: thirteen }).message, 'not this one')
  assert.deepEqual(api.requests, [])
  await pets.close()
})

test('an object in the query does not overwrite the argument that policy decided on', async () => {
  const pets = await client('pets')
  const search = async (args: Record<string, unknown>) => await pets.callTool({ name: 'search', arguments: args })
  api.requests.length = 0
  assert.equal(denialOf({ result: await search({ account: 'other' }) }).message, 'not yours')
  for (const args of [{ account: 'mine', filter: { account: 'other' } }, { filter: { Account: 'other' } }])
    assert.match(
      textOf(await search(args)),
      /^arguments\/filter: must not have a member with the name of another param/,
    )
  assert.deepEqual(api.requests, [])
  await search({ account: 'mine', filter: { color: 'red' } })
  assert.deepEqual(
    api.requests.map(({ url }) => url),
    ['/v1/search?account=mine&color=red'],
  )
  await pets.close()
})

test('a slash in a path reaches the API only in a parameter that allows it, and other paths never do', async () => {
  const pets = await client('pets')
  const get = async (project: string, file: string) =>
    await pets.callTool({ name: 'getFile', arguments: { project, file } })
  api.requests.length = 0
  for (const file of ['a/raw', 'a%2Fraw', '%252Fraw'])
    assert.equal(textOf(await get('group', file)), 'arguments/file: must not have a slash', file)
  for (const project of ['..', '.', 'group/..', 'group//team', '/group', 'group/', 'a\\b', 'a\nb'])
    assert.match(textOf(await get(project, 'a')), /^arguments\/project: must not /, project)
  assert.deepEqual(api.requests, [])
  await get('group/team', '.env')
  assert.deepEqual(
    api.requests.map(({ url }) => url),
    ['/v1/projects/group%2Fteam/files/.env'],
  )
  await pets.close()
})

test('invalid arguments or responses give a result that a model can read', async () => {
  const pets = await client('pets')
  const failed = async (name: string, args: Record<string, unknown>) => {
    const result = await pets.callTool({ name, arguments: args })
    assert.equal(result.isError, true, JSON.stringify(result))
    assert.equal(result.structuredContent, undefined)
    return textOf(result)
  }
  api.requests.length = 0
  assert.equal(await failed('getPet', {}), 'arguments/id: is required')
  assert.equal(await failed('getPet', { id: '../admin' }), 'arguments/id: must be integer')
  assert.equal(await failed('addPet', { body: { name: 'x' } }), 'arguments/body/name: must have at least 2 characters')
  assert.equal(await failed('getPet', { id: 1, x: 2 }), 'arguments/x: is not an argument that exists')
  assert.deepEqual(api.requests, [])
  assert.equal(await failed('getPet', { id: 404 }), 'The API answered 404: {"detail":"no pet 404"}')
  assert.match(
    await failed('getPet', { id: 7 }),
    /^The API answered 200, so the call was made, .*answer\/name must be string/,
  )
  assert.equal(await failed('away', {}), 'The API answered 302, a redirect. Redirects are not followed.')
  assert.equal(await failed('picture', {}), 'The API answered 200 with image/png (2 bytes), which is not passed on.')
  await pets.close()
})

test('tools of an API are called and governed at the address of all servers', async () => {
  const all = await client('')
  const names = (await all.listTools()).tools.map(({ name }) => name)
  assert.ok(names.includes('pets__getPet') && names.includes('remote__getPet'), names.join())
  const result = await all.callTool({ name: 'pets__getPet', arguments: { id: 5 } })
  assert.equal(Object(result.structuredContent).name, 'Rex')
  const thirteen = await all.callTool({ name: 'pets__getPet', arguments: { id: 13 } })
  assert.equal(denialOf({ result: thirteen }).message, 'not this one')
  await all.close()
})

test('a changed document is in force without a restart, and an unusable one refuses its server', async () => {
  const pets = await client('pets')
  await pets.listTools()
  const renamed = JSON.stringify(document).replace('"getPet"', '"readPet"')
  await write('pets.openapi.json', renamed)
  const names = async () => (await pets.listTools()).tools.map(({ name }) => name)
  await until(async () => (await names()).includes('readPet'), 'the new tool')
  await write('pets.openapi.json', '{"openapi": "3.1.0",\n"paths": }')
  await until(async () => (await up.problems()).refused.length > 0, 'the problem')
  const { refused } = await up.problems()
  assert.match(refused[0] ?? '', /^mcpservers\/default\/pets\.yaml:1: .*openapi\.file: is not strict JSON in line 2/)
  await until(
    () =>
      names().then(
        () => false,
        () => true,
      ),
    'the refusal',
  )
  await write('pets.openapi.json', JSON.stringify(document))
  await until(
    () =>
      names().then(
        (all) => all.includes('getPet'),
        () => false,
      ),
    'the server',
  )
  await pets.close()
})

test("the gateway's own admin API can be offered as an MCP server", async () => {
  cpSync(ADMIN_DOCUMENT, join(dir, 'admin.openapi.json'))
  await write('.plat/secrets/default/admin/token', up.env.PLAT_ADMIN_TOKEN ?? '')
  await put('MCPServer/mcpservers', 'admin', {
    url: up.env.PLAT_ADMIN_URL,
    openapi: { file: 'admin.openapi.json', allow: [{ tag: 'sessions' }, { operationId: 'getOpenapiJson' }] },
    auth: { type: 'bearerSecret', secretRef: { name: 'admin', key: 'token' } },
  })
  let admin: Client | null = null
  await until(async () => {
    admin = await client('admin').catch(() => null)
    return admin !== null
  }, 'the server')
  const one = Object(admin)
  const { tools } = await one.listTools()
  assert.ok(tools.length > 1)
  const result = await one.callTool({ name: 'getOpenapiJson', arguments: {} })
  assert.equal(Object(result.structuredContent).openapi, '3.1.0', JSON.stringify(result).slice(0, 300))
  await one.close()
})
