import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { npmPackage } from '@plat/testkit/processes/npm'
import { pythonWith } from '@plat/testkit/processes/python'
import { type Plat, start } from '../plat.ts'

const filesystem = await npmPackage('@modelcontextprotocol/server-filesystem', '2026.8.31')
const python = await pythonWith(path.join(import.meta.dirname, 'requirements.txt'))

/** Connects to a server of the agent. */
async function connected(plat: Plat, server: string, mode: 'auto' | 'legacy'): Promise<Client> {
  const session = await plat.session('assistant', [`tools:${server}`])
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  const { url, ...options } = session.mcp(server)
  await client.connect(new StreamableHTTPClientTransport(url, options))
  return client
}

for (const mode of ['legacy', 'auto'] as const) {
  test(`server-filesystem reads what it may and no other file, for a client in mode ${mode}`, {
    skip: 'missing' in filesystem ? filesystem.missing : false,
  }, async () => {
    assert.ok('folder' in filesystem)
    const data = await mkdtemp(path.join(tmpdir(), 'plat-files-'))
    await mkdir(path.join(data, 'in'))
    await writeFile(path.join(data, 'in/note.txt'), 'hello')
    const entry = path.join(filesystem.folder, 'dist/index.js')
    const stdio = { command: process.execPath, args: [entry, path.join(data, 'in')], isolation: { network: false } }
    await using plat = await start({ resources: { 'MCPServer/files': JSON.stringify({ stdio }) } })
    const client = await connected(plat, 'files', mode)
    const read = (file: string) =>
      client.callTool({ name: 'read_text_file', arguments: { path: path.join(data, file) } })
    assert.match(JSON.stringify((await read('in/note.txt')).content), /hello/)
    const outside = await read('../etc/hostname')
    assert.equal(outside.isError, true)
    const write = { path: path.join(data, 'in/new.txt'), content: 'written' }
    await client.callTool({ name: 'write_file', arguments: write })
    assert.equal(await readFile(write.path, 'utf8'), 'written')
    await client.close()
    await rm(data, { recursive: true })
  })

  test(`FastMCP counts in one process of a session, for a client in mode ${mode}`, {
    skip: 'missing' in python ? python.missing : false,
  }, async () => {
    assert.ok('path' in python)
    const stdio = { command: python.path, args: [path.join(import.meta.dirname, 'fastmcp_server.py')] }
    await using plat = await start({ resources: { 'MCPServer/counter': JSON.stringify({ stdio }) } })
    const client = await connected(plat, 'counter', mode)
    const count = async () => (await client.callTool({ name: 'count', arguments: { by: 2 } })).structuredContent
    assert.deepEqual([await count(), await count()], [{ result: 2 }, { result: 4 }])
    await client.close()
  })
}
