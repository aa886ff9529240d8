import { type CallToolResult, fromJsonSchema, McpServer } from '@modelcontextprotocol/server'
import { MAX_TEXT, NAME_PATTERN, NoteError, type NoteStore } from './store.ts'

const name = { type: 'string', pattern: NAME_PATTERN, description: 'Name of the note, such as "shopping".' } as const
const text = { type: 'string', maxLength: MAX_TEXT, description: 'What the note says, in Markdown.' } as const

const nothing = fromJsonSchema<object>({ type: 'object', additionalProperties: false })
const aName = fromJsonSchema<{ name: string }>({
  type: 'object',
  properties: { name },
  required: ['name'],
  additionalProperties: false,
})
const aNote = fromJsonSchema<{ name: string; text: string }>({
  type: 'object',
  properties: { name, text },
  required: ['name', 'text'],
  additionalProperties: false,
})

/** The four tools. A fresh server serves each request, so that both protocol eras need no session. */
export function notesServer(notes: NoteStore): McpServer {
  const server = new McpServer({ name: 'notes', version: '1.0.0' })
  server.registerTool(
    'list_notes',
    {
      description: 'Lists the names of all notes, one a line.',
      inputSchema: nothing,
      annotations: { readOnlyHint: true },
    },
    () => answer(async () => (await notes.list()).join('\n') || 'There are no notes yet.'),
  )
  server.registerTool(
    'read_note',
    { description: 'Reads one note.', inputSchema: aName, annotations: { readOnlyHint: true } },
    (note) => answer(() => notes.read(note.name)),
  )
  server.registerTool(
    'add_note',
    { description: 'Writes a new note. A note that exists is not overwritten.', inputSchema: aNote },
    (note) => answer(() => notes.add(note.name, note.text).then(() => `Added "${note.name}".`)),
  )
  server.registerTool(
    'delete_note',
    { description: 'Deletes one note for good.', inputSchema: aName, annotations: { destructiveHint: true } },
    (note) => answer(() => notes.delete(note.name).then(() => `Deleted "${note.name}".`)),
  )
  return server
}

async function answer(work: () => Promise<string>): Promise<CallToolResult> {
  try {
    return { content: [{ type: 'text', text: await work() }] }
  } catch (error) {
    if (!(error instanceof NoteError)) throw error
    return { content: [{ type: 'text', text: error.message }], isError: true }
  }
}
