import {
  form,
  type HostileRequest,
  head,
  list,
  MANY,
  MCP_REQUESTS,
  MIB,
  members,
  ROOM,
  TEXTS,
  whole,
} from './requests.ts'

const A2A = ['A2A-Version: 1.0']

function message(method: string, parts: string, more = ''): string {
  return `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":${parts}${more}}}}`
}

/** Messages to an agent, whole and streamed; the agent answers streams with as many events as it can. */
export const A2A_REQUESTS: readonly HostileRequest[] = [
  ...['SendMessage', 'SendStreamingMessage'].flatMap((method): readonly HostileRequest[] => [
    {
      name: `${method} with very many parts`,
      make: (at) => whole(at, message(method, list('{"text":"a"}', 13 * (MANY / 2))), A2A),
    },
    {
      name: `${method} with one text of escapes`,
      make: (at) => whole(at, message(method, `[{"text":"${'\\"'.repeat((at.maxBodyBytes - ROOM) / 2)}"}]`), A2A),
    },
    ...Object.entries(TEXTS).map(
      ([name, text]): HostileRequest => ({
        name: `${method} with data: ${name}`,
        make: (at) => whole(at, message(method, `[{"data":${text(at.maxBodyBytes - ROOM)}}]`), A2A),
      }),
    ),
  ]),
  {
    name: 'SendMessage with very many extensions',
    make: (at) => whole(at, message('SendMessage', '[{"text":"a"}]', `,"extensions":${list('"x:y"', 6 * MANY)}`), A2A),
  },
  {
    name: 'ListTasks with a long cursor',
    make: (at) =>
      whole(at, `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"pageToken":"${'A'.repeat(MIB)}"}}`, A2A),
  },
]

/** The card of an agent whose own card is as large as one may be. */
export const CARD_REQUESTS: readonly HostileRequest[] = [
  { name: 'the card of an agent with very many modes', make: (at) => Buffer.from(head(at, A2A, 'GET')) },
]

/** Code for a sandbox, which prints as much as it may. */
export const EXEC_REQUESTS: readonly HostileRequest[] = Object.entries(TEXTS).map(([name, text]) => ({
  name: `code with ${name}`,
  make: (at) => whole(at, `{"code":"a","input":${text(at.maxBodyBytes - ROOM)}}`),
}))

/** Tunnels to a host that reads whatever comes. `path`: host and port. */
export const CONNECT_REQUESTS: readonly HostileRequest[] = [
  { name: 'a tunnel of 16 MiB', make: (at) => Buffer.concat([tunnel(at), Buffer.alloc(16 * MIB, 'a')]) },
  { name: 'a tunnel with 10,000 headers', make: (at) => tunnel(at, Array(10_000).fill('X-A: 1')) },
  { name: 'a tunnel to a long name', make: (at) => tunnel({ ...at, path: `${'a.'.repeat(7_000)}a:443` }) },
  { name: 'a tunnel to a number of many digits', make: (at) => tunnel({ ...at, path: `${'1'.repeat(7_000)}:443` }) },
  {
    name: 'a tunnel to an address of many colons',
    make: (at) => tunnel({ ...at, path: `[${':'.repeat(7_000)}]:443` }),
  },
]

function tunnel(at: Parameters<HostileRequest['make']>[0], headers: readonly string[] = []): Buffer {
  return Buffer.from(head(at, [`Proxy-Authorization: Bearer ${at.token}`, ...headers], 'CONNECT'))
}

const listing = (method: string, params = '{}') => `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`

/** Requests to the address of all servers: those of one server, and lists. */
export const SHARED_REQUESTS: readonly HostileRequest[] = [
  ...MCP_REQUESTS.map(({ name, make }) => ({
    name,
    make: (at: Parameters<typeof make>[0]) =>
      Buffer.from(
        make(at)
          .toString('latin1')
          .replace(/"name":"(\w+)"/, '"name":"notes_$1"'),
        'latin1',
      ),
  })),
  { name: 'a list of 20,000 tools', make: (at) => whole(at, listing('tools/list')) },
  {
    name: 'a list with a long cursor',
    make: (at) => whole(at, listing('tools/list', `{"cursor":"${'A'.repeat(at.maxBodyBytes - ROOM)}"}`)),
  },
  {
    name: 'a resource of a long name',
    make: (at) => whole(at, listing('resources/read', `{"uri":"mcp://notes/${'%2F'.repeat(MIB)}"}`)),
  },
]

const INPUT_ITEM = '{"type":"item_reference","id":"msg_1"}'

/** Responses that name content stored at the provider. */
export const STORED_REQUESTS: readonly HostileRequest[] = [
  {
    name: 'very many references to stored items',
    make: (at) => whole(at, `{"model":"openai/m","input":${list(INPUT_ITEM, 39 * (MANY / 2))}}`),
  },
  {
    name: 'a long id of a stored response',
    make: (at) => whole(at, `{"model":"openai/m","input":"a","previous_response_id":"${'a'.repeat(3 * MIB)}"}`),
  },
  {
    name: 'very many files of one message',
    make: (at) =>
      whole(
        at,
        `{"model":"openai/m","input":[{"role":"user","content":${list('{"type":"input_file","file_id":"file-1"}', 41 * (MANY / 3))}}]}`,
      ),
  },
  {
    name: 'metadata of as many members as a message may have',
    make: (at) => whole(at, `{"model":"openai/m","input":"a","metadata":${members({ count: MANY })}}`),
  },
]

const PART = '--b\r\nContent-Disposition: form-data; '
const FILE = `${PART}name="purpose"\r\n\r\nuser_data\r\n${PART}name="file"; filename="a"\r\n\r\n`

/** Uploads of files, and lists of them. */
export const FILE_REQUESTS: readonly HostileRequest[] = [
  { name: 'a file of line breaks', make: (at) => form(at, `${FILE}${'\r\n'.repeat(2 * MIB)}\r\n--b--`) },
  {
    name: 'a file of beginnings of its boundary',
    make: (at) => form(at, `${FILE}${'\r\n--b-'.repeat(MIB / 2)}\r\n--b--`),
  },
  {
    name: 'a file with a name as long as a body',
    make: (at) => form(at, `${FILE.replace('"a"', `"${'a'.repeat(3 * MIB)}"`)}a\r\n--b--`),
  },
  { name: 'a list of files with very many parameters', make: (at) => files(at, '?limit=1'.padEnd(14_000, '&after=a')) },
]

function files(at: Parameters<HostileRequest['make']>[0], query: string): Buffer {
  return Buffer.from(head({ ...at, path: at.path + query }, [], 'GET'))
}
