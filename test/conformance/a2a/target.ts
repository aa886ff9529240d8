/** An A2A agent under test: reached directly or through the gateway, by requests as a test kit writes them. */
import { isObject } from '@plat/core'

/** Time after which a stream that does not end is a failure, in milliseconds. */
const STREAM_MS = 8000

/** A response: the HTTP status, the media type, and the messages, of which a stream has several. */
export interface Reply {
  readonly status: number
  readonly type: string
  readonly messages: readonly unknown[]
}

export interface Target {
  /** URL of the JSON-RPC endpoint. */
  readonly url: string
  readonly version: '1.0' | '0.3'
  readonly headers: Readonly<Record<string, string>>
}

export interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
  /** Appended to the URL. */
  readonly suffix?: string
  /** Called with each message of a stream when it arrives. */
  readonly onMessage?: (message: unknown) => unknown
}

/** Sends a body, as it is if it is a text. */
export async function send({ url, version, headers }: Target, body: unknown, sent: Sent = {}): Promise<Reply> {
  const { method = 'POST', suffix = '', onMessage = () => {} } = sent
  const response = await fetch(`${url.replace(/\/$/, '')}${suffix}`, {
    method,
    // The agents of the Python SDK close an idle connection after 5 seconds, perhaps while a request is sent on it.
    headers: {
      connection: 'close',
      'content-type': 'application/json',
      'a2a-version': version,
      ...headers,
      ...sent.headers,
    },
    ...(method === 'POST' && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(STREAM_MS),
  })
  const [type = ''] = (response.headers.get('content-type') ?? '').split(';')
  const messages: unknown[] = []
  if (type !== 'text/event-stream') {
    const text = await response.text()
    messages.push(type === 'application/json' ? JSON.parse(text) : text)
    return { status: response.status, type, messages }
  }
  let rest = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (!line.startsWith('data:')) continue
      const message: unknown = JSON.parse(line.slice('data:'.length))
      messages.push(message)
      onMessage(message)
    }
  }
  return { status: response.status, type, messages }
}

export function call(target: Target, method: string, params: unknown, sent: Sent = {}): Promise<Reply> {
  return send(target, { jsonrpc: '2.0', id: 'request', method, params }, sent)
}

/** Returns the first string member `name` in a value, in depth. */
export function findText(value: unknown, name: string): string {
  if (Array.isArray(value)) return value.map((one) => findText(one, name)).find((text) => text !== '') ?? ''
  if (!isObject(value)) return ''
  const own = value[name]
  return typeof own === 'string' ? own : findText(Object.values(value), name)
}

/** Sends the requests of a case, and resolves to the replies that count. */
export type Case = (target: Target) => Promise<readonly Reply[]>

/** Returns replies in a form that is the same for two runs. Of errors only their code counts, and in 1.0 the reason that it prescribes. */
export function verdictOf(replies: readonly Reply[], version: Target['version']): string {
  const lines = replies.map(({ status, type, messages }) => {
    const all = messages.map((message) => errorOf(message, version) ?? message)
    // An error may be a message or the only event of a stream.
    const isError = messages.length === 1 && all[0] !== messages[0]
    return { status, type: isError ? '' : type, messages: all }
  })
  return withoutIdentity(lines)
}

function errorOf(message: unknown, version: Target['version']): object | null {
  if (!isObject(message) || !isObject(message.error)) return null
  const { code, data } = message.error
  const [first] = Array.isArray(data) ? data : []
  const isPrescribed = version === '1.0' && typeof code === 'number' && code <= -32001 && code >= -32099
  const reason = isPrescribed && isObject(first) && first.domain === 'a2a-protocol.org' ? first.reason : undefined
  return { id: message.id ?? null, error: reason === undefined ? { code } : { reason, code } }
}

/** Returns a value as JSON in which identifiers are numbered in order, times are left out, and tokens of pages are alike. */
export function withoutIdentity(value: unknown): string {
  const ids = new Map<string, string>()
  return JSON.stringify(plain(value)).replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|(?:message|answer)-\d+/g, (id) => {
    const known = ids.get(id) ?? `#${ids.size + 1}`
    ids.set(id, known)
    return known
  })
}

const TIMES = new Set(['timestamp', 'createdAt', 'lastModified'])

/** Members in order; those that are null count as absent, as in ProtoJSON. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (!isObject(value)) return value
  const members = Object.entries(value)
    .filter(([name, member]) => !TIMES.has(name) && member !== null)
    .map(([name, member]) => [name, name === 'nextPageToken' && member !== '' ? 'a token' : plain(member)])
  return Object.fromEntries(members.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)))
}
