import { bodyOf, sendJson, serve } from './body.ts'

/** An MCP server that says as little as the protocol allows: one text as the result of every request. */
const TEXT = 'x'.repeat(1024)

serve(async (request, response) => {
  const message: unknown = JSON.parse((await bodyOf(request)).toString())
  const id = typeof message === 'object' && message !== null && 'id' in message ? message.id : null
  sendJson(response, JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: TEXT }] } }))
})
