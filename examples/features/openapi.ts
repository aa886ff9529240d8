/**
 * Calls an HTTP API that has an OpenAPI document as an MCP server.
 *
 * Prints:
 *   getPet {"id":7}: {"id":7,"name":"Rex"}
 *   getPet {"id":"seven"}: arguments/id: must be integer
 *   renamePet {"id":7}: refused (policy_denied, rule read)
 */
import { createServer } from 'node:http'
import { start } from './plat.ts'

const api = createServer(({ url = '' }, response) =>
  response.setHeader('content-type', 'application/json').end(`{"id":${url.slice('/pets/'.length)},"name":"Rex"}`),
)
await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve))
const address = api.address()
const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`

const id = { name: 'id', in: 'path', required: true, schema: { type: 'integer' } }
const operation = (operationId: string) => ({ operationId, parameters: [id], responses: { 200: { description: '' } } })
const pet = { get: operation('getPet'), put: operation('renamePet') }
const inline = JSON.stringify({ openapi: '3.1.0', paths: { '/pets/{id}': pet } })
const openapi = { inline, allow: [{ path: '/pets/*', methods: ['GET', 'PUT'] }] }

await using plat = await start({
  resources: { 'MCPServer/pets': JSON.stringify({ url, openapi }) },
  rules: `
    - { name: pets, action: allow, match: { servers: [pets] } }
    - { name: read, action: deny, match: { servers: [pets], tools: [rename*] } }`,
})
const session = await plat.session('assistant', ['tools:pets'])
await plat.call(session, 'getPet', { id: 7 }, 'pets')
await plat.call(session, 'getPet', { id: 'seven' }, 'pets')
await plat.call(session, 'renamePet', { id: 7 }, 'pets')
session.close()
api.close()
