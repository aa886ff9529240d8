import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { type Notes, startNotes } from './server.ts'

let dir = ''
let notes: Notes

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  notes = await startNotes({ port: 0, dir })
})

after(async () => {
  await notes.close()
  await rm(dir, { recursive: true })
})

async function connected(mode: 'legacy' | 'auto') {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  await client.connect(new StreamableHTTPClientTransport(new URL(notes.url)))
  return client
}

for (const mode of ['legacy', 'auto'] as const) {
  test(`a ${mode} client adds, lists, reads and deletes a note`, async () => {
    const client = await connected(mode)
    const call = async (name: string, args: Record<string, string>) => {
      const result = await client.callTool({ name, arguments: args })
      return { text: JSON.stringify(result.content), failed: result.isError === true }
    }
    assert.deepEqual(
      (await client.listTools()).tools.map((tool) => tool.name),
      ['list_notes', 'read_note', 'add_note', 'delete_note'],
    )
    assert.match((await call('add_note', { name: mode, text: 'milk' })).text, /Added/)
    assert.equal(await readFile(join(dir, 'notes', `${mode}.md`), 'utf8'), 'milk')
    assert.ok((await call('add_note', { name: mode, text: 'again' })).failed)
    assert.match((await call('list_notes', {})).text, new RegExp(mode))
    assert.match((await call('read_note', { name: mode })).text, /milk/)
    assert.match((await call('delete_note', { name: mode })).text, /Deleted/)
    assert.ok((await call('read_note', { name: mode })).failed)
    await client.close()
  })
}

test('a name cannot leave the folder', async () => {
  const client = await connected('auto')
  for (const name of ['../secret', 'a/b', '.hidden', '', 'a\u0000b']) {
    const result = await client.callTool({ name: 'read_note', arguments: { name } }).catch((error: unknown) => ({
      isError: true,
      content: String(error),
    }))
    assert.equal(result.isError, true, name)
  }
  await client.close()
})

test('a foreign Host or Origin is refused', async () => {
  const origin = await fetch(notes.url, { method: 'POST', headers: { origin: 'http://evil.example.com' } })
  assert.equal(origin.status, 403)
})
