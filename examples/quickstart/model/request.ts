export interface ModelRequest {
  readonly model: string
  /** The last message of the user. */
  readonly text: string
  readonly stream: boolean
  /** The stream ends with what was used. */
  readonly usage: boolean
  readonly maxTokens: number
}

/** Reads a chat completion; a text says what is wrong with it. */
export function readRequest(body: string): ModelRequest | string {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return 'the body is not JSON'
  }
  const model = member(value, 'model')
  const messages = member(value, 'messages')
  if (typeof model !== 'string') return 'model is required'
  if (!Array.isArray(messages) || messages.length === 0) return 'messages are required'
  const limit = member(value, 'max_completion_tokens') ?? member(value, 'max_tokens')
  return {
    model,
    text: textOf(messages.findLast((message) => member(message, 'role') === 'user')),
    stream: member(value, 'stream') === true,
    usage: member(member(value, 'stream_options'), 'include_usage') === true,
    maxTokens: typeof limit === 'number' && limit >= 1 ? limit : Number.POSITIVE_INFINITY,
  }
}

function textOf(message: unknown): string {
  const content = member(message, 'content')
  if (!Array.isArray(content)) return String(content ?? '')
  return content.map((part) => String(member(part, 'text') ?? '')).join(' ')
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.getOwnPropertyDescriptor(value, name)?.value
}
