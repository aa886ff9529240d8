import { createServer, IncomingMessage, type ServerResponse } from 'node:http'
import {
  localhostHostValidation,
  localhostOriginValidation,
  type NodeIncomingMessageLike,
  toNodeHandler,
} from '@modelcontextprotocol/node'
import {
  classifyInboundRequest,
  createMcpHandler,
  type McpRequestContext,
  McpServer,
} from '@modelcontextprotocol/server'
import { closed, listening } from '../local.ts'
import { addCompletion, addPrompts, addResources } from './content.ts'
import { states } from './rounds.ts'
import { addServerRequests } from './server-requests.ts'
import { Sessions } from './sessions.ts'
import { TaskFixture } from './tasks/task-fixture.ts'
import { addTools } from './tools.ts'

/** A running MCP server. */
export interface McpFixture {
  /** `http://127.0.0.1:<port>/mcp` */
  readonly url: string
  close(): Promise<void>
}

/**
 * Starts a server with everything that the conformance suites require by name: sessions before 2026-07-28, none from then on. With `only` it
 * supports the revisions of one era.
 */
export async function startFixture(only: McpRequestContext['era'] | null = null): Promise<McpFixture> {
  const modern = createMcpHandler(({ era }) => fixtureServer(era), { legacy: 'reject' })
  const handleModern = toNodeHandler(modern)
  const sessions = new Sessions(() => fixtureServer('legacy'))
  const tasks = new TaskFixture()
  const hostIsLocal = localhostHostValidation()
  const originIsLocal = localhostOriginValidation()
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    if (!hostIsLocal(request, response) || !originIsLocal(request, response)) return
    const body = request.method === 'POST' ? await jsonBody(request) : undefined
    const legacy = only === null ? isLegacy(request, body) : only === 'legacy'
    if (legacy) await sessions.handle(request, response, body)
    else if (TaskFixture.handles(body)) tasks.handle(request, response, body)
    else if (isNodeRequest(request)) await handleModern(request, response, body)
  }
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  const port = await listening(server)
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async close() {
      tasks.close()
      await Promise.all([sessions.close(), modern.close()])
      await closed(server)
    },
  }
}

/** Returns a server of one era with everything that the conformance suites require by name. */
export function fixtureServer(era: McpRequestContext['era']): McpServer {
  const extensions = era === 'modern' ? { extensions: { 'io.modelcontextprotocol/tasks': {} } } : {}
  const capabilities = { logging: {}, completions: {}, resources: { subscribe: true }, ...extensions }
  const options = { capabilities, requestState: { verify: states.verify } }
  const server = new McpServer({ name: 'fixture', version: '1.0.0' }, options)
  addTools(server)
  addServerRequests(server, era)
  addResources(server)
  addPrompts(server)
  addCompletion(server)
  if (era === 'legacy') {
    server.server.setRequestHandler('resources/subscribe', () => ({}))
    server.server.setRequestHandler('resources/unsubscribe', () => ({}))
  }
  return server
}

async function jsonBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    return undefined
  }
}

function isLegacy(request: IncomingMessage, body: unknown): boolean {
  const named = (name: string) => {
    const value = request.headers[name]
    return typeof value === 'string' ? value : undefined
  }
  const version = named('mcp-protocol-version')
  const outcome = classifyInboundRequest({
    httpMethod: request.method ?? '',
    body,
    ...(version !== undefined && { protocolVersionHeader: version }),
  })
  return outcome.kind === 'legacy'
}

/** The SDK's type of a request leaves out what strict optional members need; every request of `node:http` is one. */
function isNodeRequest(request: object): request is NodeIncomingMessageLike {
  return request instanceof IncomingMessage
}
