/** Response of the server to one request. */
export interface ModelReply {
  /** The pieces of the text; a stream sends one chunk for each. */
  readonly text: readonly string[]
  /** Default: 11 prompt tokens and one completion token a piece. */
  readonly usage?: { readonly prompt: number; readonly completion: number }
  /** Bytes of each write of a stream, in turn; default: one write an event. */
  readonly split?: readonly number[]
  /** Bytes of the stream after which the connection is destroyed. */
  readonly diesAfter?: number
  /** Ends the stream cleanly, but without `[DONE]`. */
  readonly truncated?: boolean
  /** Answers with this status and OpenAI's error object instead; a stream that has begun gets it as an event. */
  readonly error?: { readonly status: number; readonly message: string; readonly headers?: Record<string, string> }
  /** Nothing is answered before this is resolved. */
  readonly after?: Promise<unknown>
}

/** Inputs of the response. */
export interface ModelPrompt {
  readonly model: string
  readonly choices: number
  readonly usageRequested: boolean
}

function usageOf({ text, usage }: ModelReply) {
  const { prompt, completion } = usage ?? { prompt: 11, completion: text.length }
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  }
}

const FIXED = { id: 'chatcmpl-testkit', created: 1_790_000_000, system_fingerprint: 'fp_testkit' }

/** A whole answer, as the API writes it: indented. */
export function completion(answer: ModelReply, requested: ModelPrompt): string {
  const content = answer.text.join('')
  const choices = Array.from({ length: requested.choices }, (_, index) => ({
    index,
    message: { role: 'assistant', content, refusal: null, annotations: [] },
    logprobs: null,
    finish_reason: 'stop',
  }))
  const whole = { ...FIXED, object: 'chat.completion', model: requested.model, choices, usage: usageOf(answer) }
  return JSON.stringify(whole, null, 2)
}

/** Returns the events of a streamed response. If requested, `usage` is in every chunk, and in a separate chunk at the end. */
export function events(answer: ModelReply, { model, usageRequested }: ModelPrompt): string[] {
  const chunk = (choices: unknown[], usage: unknown) => {
    const withUsage = usageRequested ? { usage } : {}
    return `data: ${JSON.stringify({ ...FIXED, object: 'chat.completion.chunk', model, choices, ...withUsage })}\n\n`
  }
  const choice = (delta: object, finish: string | null) => [{ index: 0, delta, logprobs: null, finish_reason: finish }]
  return [
    chunk(choice({ role: 'assistant', content: '', refusal: null }, null), null),
    ...answer.text.map((content) => chunk(choice({ content }, null), null)),
    chunk(choice({}, 'stop'), null),
    ...(usageRequested ? [chunk([], usageOf(answer))] : []),
    ...(answer.truncated ? [] : ['data: [DONE]\n\n']),
  ]
}

/** The same bytes cut into writes of the given sizes, again and again. */
export function splitInto(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const parts: Uint8Array[] = []
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = Math.max(1, sizes[turn % sizes.length] ?? bytes.length)
    parts.push(bytes.subarray(at, at + size))
    at += size
  }
  return parts
}
