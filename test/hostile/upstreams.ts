import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { closed, listening } from '@plat/testkit/local'

const KIB = 1024
const MIB = 1024 * KIB
/** Tools of an MCP server, each with a schema. */
const TOOLS = 20_000
/** Events of one stream of an agent. */
const EVENTS = 20_000

const tool = (at: number) => `{"name":"t${at}","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`
const TOOL_LIST = `{"tools":[${Array.from({ length: TOOLS }, (_, at) => tool(at)).join()}]}`

/** Result of an MCP server for a method, as JSON. */
export function mcpResult(method: unknown): string {
  if (method === 'initialize')
    return '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}'
  return method === 'tools/list' ? TOOL_LIST : '{"content":[]}'
}

const CARD = JSON.stringify({
  supportedInterfaces: [{ url: 'http://a.example', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: {},
  defaultInputModes: Array(60_000).fill('a'),
  defaultOutputModes: ['a'],
})
/** Text of an agent and a sandbox that redaction searches for long. */
const TEXT = 'AKIAAKIA a@b.c@d. 4111 1111 '.repeat((2 * MIB) / 28)
const MESSAGE = JSON.stringify({ message: { messageId: 'a', role: 'ROLE_AGENT', parts: [{ text: TEXT }] } })
const EVENT = '{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}'

/** An upstream on a free port of loopback. */
export interface Upstream {
  readonly port: number
  close(): Promise<void>
}

/** An agent and a sandbox whose responses are as expensive as they may be. */
export async function startHostileUpstream(): Promise<Upstream> {
  const server = createServer(async (request, response) => {
    const body = request.method === 'POST' ? await bodyOf(request) : ''
    if (request.method === 'GET') sendJson(response, CARD)
    else if (request.url?.endsWith('/exec')) sendJson(response, JSON.stringify({ stdout: TEXT, exitCode: 0 }))
    else if (body.includes('"SendStreamingMessage"')) sendEvents(response)
    else sendJson(response, `{"jsonrpc":"2.0","id":1,"result":${MESSAGE}}`)
  })
  return { port: await listening(server), close: () => closed(server) }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  // The method is at the beginning.
  return Buffer.concat(chunks).toString('latin1', 0, KIB)
}

function sendJson(response: ServerResponse, json: string): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(json)
}

function sendEvents(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(`data: {"jsonrpc":"2.0","id":1,"result":${EVENT}}\n\n`.repeat(EVENTS))
}

/** A host that reads everything and says nothing. */
export async function startSilentHost(): Promise<Upstream> {
  const server = createTcpServer((socket) => socket.on('error', () => {}).resume())
  return { port: await listening(server), close: async () => void server.close() }
}
