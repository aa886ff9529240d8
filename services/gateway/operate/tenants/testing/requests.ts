import { TOKEN } from '../../../testing/started.ts'

/** A response. Its body is the value of JSON, else null. */
export type Reply = Awaited<ReturnType<typeof replyOf>>

interface Sending {
  /** A person of the identity provider; null: without a token; absent: the static token. */
  readonly as?: string | null
  readonly body?: unknown
}

interface ToolCall {
  readonly tool?: string
  readonly text?: string
  /** Ends a call that waits for an approval. */
  readonly signal?: AbortSignal
}

/** Reads a response; a stream of events, which has no end, is left. */
async function replyOf(response: Response) {
  const type = response.headers.get('content-type')?.split(';')[0]
  const isStream = type === 'text/event-stream'
  const text = isStream ? '' : await response.text()
  if (isStream) await response.body?.cancel()
  return { status: response.status, text, body: type === 'application/json' && text !== '' ? JSON.parse(text) : null }
}

/** Returns a function that sends a request, such as `GET /v1/sessions`, to the admin API. `tokenOf`: of a person. */
export function adminAt(url: string, tokenOf: (user: string) => Promise<string>) {
  const tokens = new Map<string, string>()
  const bearerOf = async (as: string | null | undefined) => {
    if (typeof as !== 'string') return as === undefined ? TOKEN : null
    const known = tokens.get(as) ?? (await tokenOf(as))
    tokens.set(as, known)
    return known
  }
  return async (route: string, { as, body }: Sending = {}): Promise<Reply> => {
    const bearer = await bearerOf(as)
    const [method = '', path = ''] = route.split(' ')
    const hasBody = method === 'POST'
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
        ...(hasBody && { 'content-type': 'application/json' }),
      },
      ...(hasBody && { body: JSON.stringify(body ?? {}) }),
    })
    return replyOf(response)
  }
}

/** Returns a function that calls a tool. */
export function callsAt(url: string) {
  return async (
    bearer: string,
    server: string,
    { tool = 'look', text = '', signal }: ToolCall = {},
  ): Promise<Reply> => {
    const params = { name: tool, arguments: { text } }
    const response = await fetch(`${url}/mcp/${server}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${bearer}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      ...(signal && { signal }),
    })
    return { status: response.status, text: await response.text(), body: null }
  }
}
