import { once } from 'node:events'
import { createServer, IncomingMessage } from 'node:http'
import { join } from 'node:path'
import {
  localhostHostValidation,
  localhostOriginValidation,
  type NodeIncomingMessageLike,
  toNodeHandler,
} from '@modelcontextprotocol/node'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { parseFlags } from '@plat/config'
import { onShutdown } from '@plat/process'
import { NoteStore } from './store.ts'
import { notesServer } from './tools.ts'

export interface Notes {
  /** Where MCP clients connect: `http://127.0.0.1:<port>/mcp`. */
  readonly url: string
  close(): Promise<void>
}

/**
 * Serves the notes in `<dir>/notes` over MCP on 127.0.0.1; port 0 takes a free one. Only requests that name this machine are
 * answered, so that no web page can reach the notes through a browser.
 */
export async function startNotes({ port, dir }: { port: number; dir: string }): Promise<Notes> {
  const notes = new NoteStore(join(dir, 'notes'))
  const mcp = createMcpHandler(() => notesServer(notes))
  const handle = toNodeHandler(mcp)
  const hostIsLocal = localhostHostValidation()
  const originIsLocal = localhostOriginValidation()
  const server = createServer((request, response) => {
    if (!hostIsLocal(request, response) || !originIsLocal(request, response)) return
    if (request.url === '/mcp' && isNodeRequest(request)) void handle(request, response)
    else response.writeHead(404).end()
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const bound = address !== null && typeof address === 'object' ? address.port : port
  return {
    url: `http://127.0.0.1:${bound}/mcp`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await mcp.close()
      await closed
    },
  }
}

/** The SDK's type of a request leaves out what strict optional members need; every request of `node:http` is one. */
function isNodeRequest(request: object): request is NodeIncomingMessageLike {
  return request instanceof IncomingMessage
}

const FLAGS = {
  port: { type: 'int', default: 8091, min: 0, max: 65_535, help: 'Port on 127.0.0.1; 0 takes a free one.' },
  dir: { type: 'string', default: '.', help: 'Folder whose `notes` holds the notes.' },
} as const

/** `server.mjs -port 8091 -dir …` */
export async function main(argv: readonly string[]): Promise<number> {
  const flags = parseFlags(FLAGS, argv, 'server.mjs')
  if (!flags.ok) {
    console.error(`${flags.message}\n${flags.usage}`)
    return flags.help ? 0 : 2
  }
  const notes = await startNotes(flags.values)
  console.log(`notes on ${notes.url}`)
  return await new Promise((resolve) => {
    onShutdown(async () => {
      await notes.close()
      resolve(0)
    })
  })
}
