import { setTimeout as sleep } from 'node:timers/promises'
import {
  type CallToolResult,
  fromJsonSchema,
  type InputRequiredResult,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { PIXEL, SILENCE } from './content.ts'

/** Between two notifications of one call, in milliseconds. */
const PAUSE_MS = 20

const nothing = fromJsonSchema<object>({ type: 'object', properties: {} })

type ToolReply = CallToolResult | InputRequiredResult
type Work = (context: ServerContext) => ToolReply | Promise<ToolReply>

/** A tool without arguments. */
export function addTool(server: McpServer, name: string, work: Work): void {
  server.registerTool(name, { description: `Fixture ${name}`, inputSchema: nothing }, (_, context) => work(context))
}

export const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })

/** Tools of the conformance suites that send no requests to the client. */
export function addTools(server: McpServer): void {
  addTool(server, 'test_simple_text', () => text('This is a simple text response for testing.'))
  addTool(server, 'test_image_content', () => ({ content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }] }))
  addTool(server, 'test_audio_content', () => ({ content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }] }))
  addTool(server, 'test_embedded_resource', () => ({
    content: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  }))
  addTool(server, 'test_multiple_content_types', () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      { type: 'image', data: PIXEL, mimeType: 'image/png' },
      resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  }))
  addTool(server, 'test_error_handling', () => {
    throw new Error('This tool intentionally returns an error for testing')
  })
  addTool(server, 'test_tool_with_logging', logs)
  addTool(server, 'test_logging_tool', logs)
  addTool(server, 'test_tool_with_progress', progresses)
  addTool(server, 'test_reconnection', async (context) => {
    context.http?.closeSSE?.()
    await sleep(PAUSE_MS * 5)
    return text('The stream was closed and taken up again.')
  })
  addSchemaTools(server)
}

function resource(uri: string, mimeType: string, value: string) {
  return { type: 'resource', resource: { uri, mimeType, text: value } } as const
}

async function logs({ mcpReq }: ServerContext): Promise<CallToolResult> {
  for (const line of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
    await mcpReq.log('info', line)
    await sleep(PAUSE_MS)
  }
  return text('Logged three messages.')
}

async function progresses({ mcpReq }: ServerContext): Promise<CallToolResult> {
  const progressToken = mcpReq._meta?.progressToken
  for (const progress of [0, 50, 100]) {
    if (progressToken !== undefined)
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } })
    await sleep(PAUSE_MS)
  }
  return text('Reported progress.')
}

/** Two tools whose schemas use what gateways are tempted to lose. */
function addSchemaTools(server: McpServer): void {
  const inputSchema = fromJsonSchema<object>({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
      address: {
        $anchor: 'addressDef',
        type: 'object',
        properties: { street: { type: 'string' }, city: { type: 'string' } },
      },
    },
    properties: {
      name: { type: 'string' },
      address: { $ref: '#/$defs/address' },
      contactMethod: { type: 'string', enum: ['phone', 'email'] },
      phone: { type: 'string' },
      email: { type: 'string' },
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    // biome-ignore lint/suspicious/noThenProperty: `then` is a keyword of JSON Schema.
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false,
  })
  const description = 'Tool with JSON Schema 2020-12 features'
  server.registerTool('json_schema_2020_12_tool', { description, inputSchema }, () => text('ok'))
  const region = { type: 'string' as const, description: 'Mirrored in a header', 'x-mcp-header': 'Region' }
  const query = { type: 'string' as const, description: 'Not mirrored' }
  const mirrored = fromJsonSchema<object>({ type: 'object', properties: { region, query }, required: ['region'] })
  server.registerTool('test_x_mcp_header', { description: 'A mirrored parameter', inputSchema: mirrored }, () =>
    text('ok'),
  )
}
