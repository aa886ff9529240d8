/** The MCP SDK for TypeScript, version 1: takes steps from standard input, and prints what each call returned. */
import { readFileSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const { mcpServers } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'))
const texts = []
for (const { server, tool, arguments: args } of JSON.parse(readFileSync(0, 'utf8'))) {
  const { url, headers = {} } = mcpServers[server]
  const client = new Client({ name: 'typescript-v1', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
  await client.listTools()
  let text = 'waiting for approval'
  while (text.includes('waiting for approval')) {
    const { content } = await client.callTool({ name: tool, arguments: args })
    text = content.map((part) => part.text).join('')
  }
  texts.push(text)
  await client.close()
}
console.log(JSON.stringify(texts))
