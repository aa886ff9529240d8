/** One request that costs far more than it should where something is not linear. */
export interface HostileRequest {
  readonly name: string
  /** Its bytes. They are made when it is sent, since some are large. */
  make(at: Target): Buffer
}

/** Where a request goes, with what its head needs. */
export interface Target {
  readonly path: string
  readonly token: string
}

const MIB = 1024 * 1024
/** The gateway's limit. */
const MAX_BODY_BYTES = 4 * MIB
/** Maximum size of the rest of a message, in bytes. */
const ROOM = 4096

function head({ path, token }: Target, headers: readonly string[]): string {
  return [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    'MCP-Protocol-Version: 2025-11-25',
    `Authorization: Bearer ${token}`,
    'Connection: close',
    ...headers,
    '\r\n',
  ].join('\r\n')
}

function whole(at: Target, body: string): Buffer {
  return Buffer.from(`${head(at, [`Content-Length: ${Buffer.byteLength(body)}`])}${body}`)
}

/** A tool call whose arguments, and whatever `meta` gives, are JSON already. */
function call(name: string, args: string, meta = '{}'): string {
  return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":${meta},"name":"${name}","arguments":${args}}}`
}

/** An object with different names, of at most so many members and bytes. */
function members({ bytes = Number.POSITIVE_INFINITY, count = Number.POSITIVE_INFINITY }): string {
  const made: string[] = []
  for (let size = 0, n = 0; size < bytes && n < count; n++) {
    const member = `"${n.toString(36)}":0`
    made.push(member)
    size += member.length + 1
  }
  return `{${made.join(',')}}`
}

const list = (element: string, bytes: number) =>
  `[${Array(Math.floor(bytes / (element.length + 1)))
    .fill(element)
    .join(',')}]`

const KIB_60 = 60 * 1024
const KIB_31 = 31 * 1024
/** Members that a message may have beside those of its frame. */
const MANY = 99_000

/** A tool of each name is under the rule that the request is for: see `hostileRules`. */
export const MCP_REQUESTS: readonly HostileRequest[] = [
  {
    name: 'a number of 60 KB under an approval rule',
    make: (at) => whole(at, call('wipe', `{"n":1.${'0'.repeat(KIB_60)}1}`)),
  },
  {
    name: 'one-byte chunks',
    make: (at) => Buffer.from(head(at, ['Transfer-Encoding: chunked']) + '1\r\na\r\n'.repeat(MIB)),
  },
  {
    name: 'nested comprehensions over 31 KB',
    make: (at) => whole(at, call('nested', `{"groups":[${list('[1,2]', KIB_31 / 2)},${list('[3]', KIB_31 / 2)}]}`)),
  },
  {
    name: 'a comprehension over 4 MB',
    make: (at) => whole(at, call('all', `{"items":${list('1', MAX_BODY_BYTES - ROOM)}}`)),
  },
  {
    name: '4 MiB of tiny members',
    make: (at) => whole(at, call('free', members({ bytes: MAX_BODY_BYTES - ROOM }))),
  },
  {
    name: 'as many members as a message may have',
    make: (at) => whole(at, call('free', members({ count: MANY }))),
  },
  {
    name: 'as many members as a message may have, under an approval rule',
    make: (at) => whole(at, call('wipe', members({ count: MANY }))),
  },
  {
    name: 'one string of 4 MiB of escapes',
    make: (at) => whole(at, call('free', `{"s":"${'\\u0041'.repeat((MAX_BODY_BYTES - ROOM) / 6)}"}`)),
  },
  {
    name: '10,000 headers',
    make: (at) =>
      Buffer.from(head(at, [...Array.from({ length: 10_000 }, (_, n) => `X-${n}: 1`), 'Content-Length: 0'])),
  },
  {
    name: 'as many members of _meta as a message may have',
    make: (at) => whole(at, call('free', '{}', members({ count: MANY }))),
  },
]

export const MODEL_REQUESTS: readonly HostileRequest[] = [
  {
    name: 'a model request with 49,500 messages',
    make: (at) =>
      whole(
        at,
        `{"model":"openai/m","max_tokens":5,"messages":${list('{"role":"user","content":"hi"}', 31 * (MANY / 2))}}`,
      ),
  },
]

/** Requests to a service without authentication: they need no token, and its limits are lower. */
export const ANONYMOUS_REQUESTS: readonly HostileRequest[] = MCP_REQUESTS.filter(
  ({ name }) => !name.includes('rule') && !name.includes('comprehension'),
)

/** Rules under which the requests cost the most. */
export const hostileRules: readonly object[] = [
  { name: 'ask', action: 'require_approval', match: { tools: ['wipe'] }, reason: 'a person decides' },
  { name: 'nested', action: 'deny', match: { tools: ['nested'] }, when: 'args.groups.all(g, g.all(i, i != [9]))' },
  { name: 'all', action: 'deny', match: { tools: ['all'] }, when: 'args.items.all(i, i < 9)' },
  { name: 'rest', action: 'allow' },
]
