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
  /** Largest body that the service reads. */
  readonly maxBodyBytes: number
}

export const MIB = 1024 * 1024
/** Maximum size of the rest of a message, in bytes. */
export const ROOM = 4096

/** The head of a request. */
export function head({ path, token }: Target, headers: readonly string[], method = 'POST'): string {
  return [
    `${method} ${path} HTTP/1.1`,
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

/** A request with a body of JSON. */
export function whole(at: Target, body: string, headers: readonly string[] = []): Buffer {
  return Buffer.from(`${head(at, [...headers, `Content-Length: ${Buffer.byteLength(body)}`])}${body}`)
}

/** A tool call whose arguments, and whatever `meta` gives, are JSON already. */
export function call(name: string, args: string, meta = '{}'): string {
  return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":${meta},"name":"${name}","arguments":${args}}}`
}

/** An object with different names, of at most so many members and bytes. */
export function members({ bytes = Number.POSITIVE_INFINITY, count = Number.POSITIVE_INFINITY }): string {
  const made: string[] = []
  for (let size = 0, n = 0; size < bytes && n < count; n++) {
    const member = `"${n.toString(36)}":0`
    made.push(member)
    size += member.length + 1
  }
  return `{${made.join(',')}}`
}

export const list = (element: string, bytes: number) =>
  `[${Array(Math.floor(bytes / (element.length + 1)))
    .fill(element)
    .join(',')}]`

/** Texts for `arguments`, of so many bytes, in which parsers and searches may be slower than linear. */
export const TEXTS: Readonly<Record<string, (bytes: number) => string>> = {
  'one string of digits': (bytes) => `{"s":"${'4'.repeat(bytes)}"}`,
  'numbers of many digits': (bytes) => `{"n":${list(`1${'0'.repeat(1_000)}.${'0'.repeat(1_000)}1`, bytes)}}`,
  'one string of zeros and exponents': (bytes) => `{"s":"${'0e0'.repeat(bytes / 3)}"}`,
  'many lists in each other': (bytes) =>
    `{"n":${list(`${'['.repeat(40)}${']'.repeat(40)}`, Math.min(bytes, 180 * 1024))}}`,
  'lists in each other without end': (bytes) => `{"n":${'['.repeat(bytes)}`,
  'strings that begin like keys': (bytes) => `{"n":${list('"AKIAAKIAAKIAAKIA-sk-sk-sk-ghp_ghp_ghp_"', bytes)}}`,
  'one name as long as a body': (bytes) => `{"${'n'.repeat(bytes)}":0}`,
  'names of 4 KiB that differ at their end': (bytes) =>
    `{${Array.from({ length: bytes / 4_100 }, (_, n) => `"${'n'.repeat(4_000)}${n}":0`).join(',')}}`,
  'one string like base64': (bytes) => `{"s":"${'QUJDREVGR0hJSktM'.repeat(bytes / 16)}"}`,
  'one string of @ and dots': (bytes) => `{"s":"${'a@b.'.repeat(bytes / 4)}"}`,
  'one string of escapes': (bytes) => `{"s":"${'\\u0041'.repeat(bytes / 6)}"}`,
  'tiny members': (bytes) => members({ bytes }),
}

const KIB_60 = 60 * 1024
const KIB_31 = 31 * 1024
/** Members that a message may have beside those of its frame. */
export const MANY = 99_000

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
    make: (at) => whole(at, call('all', `{"items":${list('1', at.maxBodyBytes - ROOM)}}`)),
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
    name: '10,000 headers',
    make: (at) =>
      Buffer.from(head(at, [...Array.from({ length: 10_000 }, (_, n) => `X-${n}: 1`), 'Content-Length: 0'])),
  },
  {
    name: 'as many members of _meta as a message may have',
    make: (at) => whole(at, call('free', '{}', members({ count: MANY }))),
  },
  ...Object.entries(TEXTS).map(([name, text]) => ({
    name,
    make: (at: Target) => whole(at, call('free', text(at.maxBodyBytes - ROOM))),
  })),
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

/** A plan of infrastructure, as large as a body may be. */
export const PLAN_REQUESTS: readonly HostileRequest[] = [
  {
    name: 'a plan of very many changes',
    make: (at) => {
      const change =
        '{"address":"aws_instance.a","type":"aws_instance","mode":"managed","change":{"actions":["delete"]}}'
      return whole(at, `{"format_version":"1.2","resource_changes":${list(change, 15 * MIB)}}`)
    },
  },
  {
    name: 'a plan of addresses in as many modules as they may have',
    make: (at) => {
      const address = `${'module.a.'.repeat(64)}aws_instance.a`
      const change = `{"address":"${address}","type":"aws_instance","mode":"managed","change":{"actions":["delete"]}}`
      return whole(at, `{"format_version":"1.2","resource_changes":${list(change, 15 * MIB)}}`)
    },
  },
]

/** An upload in pieces: a file that begins its boundary again and again, and a form of very many parts. */
export const FORM_REQUESTS: readonly HostileRequest[] = [
  {
    name: 'a file of beginnings of its boundary',
    make: (at) => form(at, `${FIELDS}${FILE}${'\r\n--b-\r\n--'.repeat(MIB / 3)}\r\n--b--`),
  },
  {
    name: 'a form of very many parts',
    make: (at) => form(at, 'Content-Disposition: form-data; name="x"\r\n\r\n\r\n--b\r\n'.repeat(40_000)),
  },
  {
    name: 'a field of nested JSON',
    make: (at) =>
      form(
        at,
        `${FIELDS}--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n${'['.repeat(MIB)}\r\n${FILE}x\r\n--b--`,
      ),
  },
]

const PART = '--b\r\nContent-Disposition: form-data; '
const FIELDS = `${PART}name="model"\r\n\r\ni\r\n${PART}name="prompt"\r\n\r\nx\r\n`
const FILE = `${PART}name="image"; filename="a"\r\n\r\n`

/** A form with boundary `b`. */
export function form(at: Target, body: string): Buffer {
  const text = head(at, [`Content-Length: ${body.length}`]).replace(
    'application/json',
    'multipart/form-data; boundary=b',
  )
  return Buffer.from(text + body)
}

/** Requests to the admin API: with its token, and to routes that read lists. */
export const ADMIN_REQUESTS: readonly HostileRequest[] = [
  ...['as many members as a message may have', 'tiny members', 'one-byte chunks', '10,000 headers'].map(
    (name) => MCP_REQUESTS.find((one) => one.name === name) ?? fail(name),
  ),
  { name: 'a query of very many parameters', make: (at) => query(at, 'a=1&'.repeat(3_500)) },
  { name: 'a query of one long text', make: (at) => query(at, `q=${'%61'.repeat(4_500)}`) },
]

function query(at: Target, text: string): Buffer {
  return Buffer.from(head({ ...at, path: `/v1/sessions?${text}` }, [], 'GET'))
}

function fail(name: string): never {
  throw new Error(`there is no request "${name}"`)
}

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
