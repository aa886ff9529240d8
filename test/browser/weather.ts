import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'

/** An MCP server whose tools change. */
export interface Weather {
  readonly url: string
  /** Replaces the description of the tool `forecast`. */
  describe(text: string): void
  /** Offers further tools. */
  offer(tools: readonly object[]): void
  close(): Promise<void>
}

export async function startWeather(): Promise<Weather> {
  const upstream = await startScriptedUpstream()
  let description = 'Reports the weather of a place.'
  let further: readonly object[] = []
  const tools = () => [
    ...further,
    { name: 'forecast', description, inputSchema: { type: 'object' } },
    { name: 'watch', description: 'Reports changes until it is stopped.', inputSchema: { type: 'object' } },
  ]
  upstream.answers((request, response) => {
    const { id, method, params } = JSON.parse(request.body)
    if (method === 'tools/call' && params.name === 'watch') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const progress = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'rain' } }
      response.write(`event: message\ndata: ${JSON.stringify(progress)}\n\n`)
      return
    }
    const result = method === 'tools/list' ? { tools: tools() } : { content: [{ type: 'text', text: 'sunny' }] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  return {
    url: upstream.url,
    describe(text) {
      description = text
    },
    offer(offered) {
      further = offered
    },
    close: () => upstream.close(),
  }
}
