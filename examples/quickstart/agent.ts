/**
 * An agent as anybody would write it, with the official clients of OpenAI and MCP. It knows nothing of plat: it reads the usual
 * variables and the usual `mcp.json`, and the forwarder of `plat run` adds its identity to every call.
 */
import { readFile } from 'node:fs/promises'
import { type CallToolResult, Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import OpenAI from 'openai'

const completion = await new OpenAI().chat.completions
  .create({ model: 'scripted-1', messages: [{ role: 'user', content: 'hello' }] })
  .catch((error: unknown) => {
    say('calls its model', `refused: ${error instanceof Error ? error.message : String(error)}`)
    process.exit(1)
  })
say('calls its model', completion.choices[0]?.message.content ?? '')
say('has used', `${completion.usage?.total_tokens} tokens`)

const config = JSON.parse(await readFile(process.env.PLAT_MCP_CONFIG ?? 'mcp.json', 'utf8'))
const client = new Client({ name: 'demo-agent', version: '1.0.0' })
await client.connect(new StreamableHTTPClientTransport(new URL(config.mcpServers.notes.url)))

const { tools } = await client.listTools()
say('lists its tools', tools.map((tool) => tool.name).join(', '))

await call('adds a note', 'add_note', { name: 'keep-milk', text: 'Buy milk.' })
await call('reads it back', 'read_note', { name: 'keep-milk' })
await call('tries to delete it', 'delete_note', { name: 'keep-milk' })
await call('adds another', 'add_note', { name: 'draft', text: 'Not needed.' })
await call('tries to delete that', 'delete_note', { name: 'draft' })
await client.close()

async function call(what: string, name: string, args: Record<string, string>): Promise<void> {
  try {
    let result = await client.callTool({ name, arguments: args })
    // A model reads this in the result, and repeats the call.
    while (result.isError && textOf(result).includes('repeat this call to learn the outcome'))
      result = await client.callTool({ name, arguments: args })
    say(what, result.isError ? `denied: ${textOf(result)}` : textOf(result))
  } catch (error) {
    say(what, `denied: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function textOf({ content }: CallToolResult): string {
  return content.map((part) => (part.type === 'text' ? part.text : part.type)).join(' ')
}

function say(what: string, result: string): void {
  console.log(`  the agent ${what.padEnd(20)} -> ${result}`)
}
