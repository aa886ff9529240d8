import { costTarget, type Families, type Row } from '../../../../test/fuzz/cost.ts'
import { json, text } from '../../../../test/fuzz/families.ts'
import { cursorText, readCursor } from './shared/cursor.ts'
import { listKind, namedPage } from './shared/lists.ts'
import { Naming, splitUri } from './shared/naming.ts'
import { withSharedNames, withSharedUris } from './shared/uris.ts'
import { taskChanges } from './tasks/messages.ts'

const KIB = 1024
/** Largest body of a request, by default. Answers may be longer; what they take beside `JSON.parse` is the same part. */
const BODY = 4 * 1024 * KIB
/** Members of all objects of a message (`MESSAGE_LIMITS`). */
const MEMBERS = 100_000

const naming = new Naming('__')

const many = (n: number, size: number, each: (at: number) => string) =>
  Array.from({ length: Math.min(n / size, MEMBERS) }, (_, at) => each(at)).join(',')
const within = (before: string, after: string): Families =>
  Object.fromEntries(Object.entries(json).map(([name, make]) => [name, (n: number) => before + make(n) + after]))

const tasks = (ids: string) =>
  `{"method":"subscriptions/listen","params":{"notifications":{"taskIds":[${ids}]},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"}}}}`
const listed = (member: string, entries: string) => `{"jsonrpc":"2.0","id":1,"result":{"${member}":[${entries}]}}`

const rows: readonly Row[] = [
  {
    parser: 'tasks of MCP',
    limit: BODY,
    families: {
      'ids of the caller': (n) => tasks(`${'"servers/a",'.repeat(n / 12)}"servers/a"`),
      'ids of others': (n) => tasks(`${'"a",'.repeat(n / 4)}"a"`),
      'different ids': (n) => tasks(many(n, 16, (at) => `"servers/${at}"`)),
      'a long id': (n) => tasks(`"${'servers/'.repeat(n / 8)}"`),
    },
    prepare: (input) => {
      const message = JSON.parse(input)
      const shared = { prefix: 'servers', session: null, shownName: null }
      return () => taskChanges({ message, shared, task: () => null }, message.method)
    },
  },
  ...(['tools', 'resources', 'tasks'] as const).map(
    (entries): Row => ({
      parser: 'lists of all servers',
      part: entries,
      limit: BODY,
      families: {
        ...within(`{"result":{"${entries}":[`, ']}}'),
        'short names': (n) =>
          listed(
            entries,
            many(n, 13, () => '{"name":"a"}'),
          ),
        'long names': (n) =>
          listed(
            entries,
            many(n, 90, (at) => `{"name":"${'a'.repeat(70)}${at}"}`),
          ),
        'long entries': (n) =>
          listed(
            entries,
            many(n, 1000, (at) => `{"text":"${'a'.repeat(960)}","name":"${at}","uri":"${at}"}`),
          ),
        uris: (n) =>
          listed(
            entries,
            many(n, 20, (at) => `{"uri":"a:/${at}"}`),
          ),
        ids: (n) =>
          listed(
            entries,
            many(n, 20, (at) => `{"taskId":"${at}"}`),
          ),
      },
      prepare: (input) => {
        const message = { json: Buffer.from(input), value: JSON.parse(input) }
        const kind = listKind(`${entries}/list`)
        return () => (kind === null ? null : namedPage(message, { kind, naming, prefix: 'servers' }))
      },
    }),
  ),
  ...(['resources/read', 'tools/call', 'prompts/get'] as const).map(
    (method): Row => ({
      parser: 'names of resources for all servers',
      part: method,
      limit: BODY,
      families: {
        ...within('{"result":{"content":[', '],"contents":[],"messages":[]}}'),
        links: (n) =>
          listed(
            'content',
            many(n, 41, () => '{"type":"resource_link","uri":"a:/b"}'),
          ),
        'links of others': (n) =>
          listed(
            'content',
            many(n, 30, () => '{"type":"text","text":"a"}'),
          ),
        contents: (n) =>
          listed(
            'contents',
            many(n, 30, () => '{"uri":"a:/b","text":"a"}'),
          ),
        messages: (n) =>
          listed(
            'messages',
            many(n, 80, () => '{"content":[{"type":"resource","resource":{"uri":"a:/b"}}]}'),
          ),
      },
      prepare: (input) => {
        const bytes = Buffer.from(input)
        const value: unknown = JSON.parse(input)
        return () => [withSharedUris(bytes, value, { method, prefix: 'servers' }), withSharedNames(bytes, value, 's')]
      },
    }),
  ),
  {
    parser: 'names for all servers',
    limit: 64 * KIB,
    families: {
      ...text,
      separators: (n) => '_'.repeat(n),
      addresses: (n) => `mcp://${'/'.repeat(n)}`,
      cursors: (n) => cursorText({ method: 'tools/list', more: [{ server: 'a', cursor: 'b'.repeat(n) }], after: 'a' }),
    },
    run: (input) => [
      naming.split(input),
      naming.toolName('servers', input),
      naming.prefixOf(input),
      splitUri(input),
      readCursor(input, 'tools/list'),
    ],
  },
]

export const target = costTarget('cost/MCP', rows)
