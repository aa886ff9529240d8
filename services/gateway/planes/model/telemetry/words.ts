import type { Body, Call, Snapshot } from '../../../call/index.ts'
import { answeredBy } from '../note.ts'
import { ModelBody } from '../request.ts'
import type { ModelEndpoint } from '../upstream/endpoint.ts'
import { EmbeddingObserver, ResponseObserver } from './answer.ts'
import { promptOf } from './prompt.ts'

/** Operation names of OpenTelemetry's conventions by endpoint below `/v1/`. Other endpoints generate nothing. */
const OPERATIONS: Readonly<Record<string, string>> = {
  'chat/completions': 'chat',
  messages: 'chat',
  responses: 'chat',
  generateContent: 'generate_content',
  completions: 'text_completion',
  embeddings: 'embeddings',
}

/** Provider names of the conventions; other names are used unchanged. */
const PROVIDERS: Readonly<Record<string, string>> = {
  'azure-openai': 'azure.ai.openai',
  bedrock: 'aws.bedrock',
  vertex: 'gcp.vertex_ai',
  gemini: 'gcp.gemini',
  'oci-genai': 'oci.generative_ai',
}

/** Settings of a request that are numbers, by all names that they have in OpenAI's and Anthropic's APIs. */
const NUMBERS: readonly (readonly [member: string, attribute: string])[] = [
  ['temperature', 'gen_ai.request.temperature'],
  ['top_p', 'gen_ai.request.top_p'],
  ['top_k', 'gen_ai.request.top_k'],
  ['frequency_penalty', 'gen_ai.request.frequency_penalty'],
  ['presence_penalty', 'gen_ai.request.presence_penalty'],
  ['seed', 'gen_ai.request.seed'],
]

/** Maximum number and length of reported stop sequences. */
const MAX_STOPS = 16
const MAX_STOP_LENGTH = 64

type RouteOf = (snapshot: Snapshot, key: string) => { readonly endpoints: readonly ModelEndpoint[] } | null

/** Span attributes of model calls (OpenTelemetry's conventions for generative AI, 1.41.0). */
export function createModelWords(route: RouteOf) {
  return {
    operation: (method: string): string | null =>
      Object.hasOwn(OPERATIONS, method) ? (OPERATIONS[method] ?? null) : null,
    provider(call: Call<'target'>): string | null {
      const endpoint = answeredBy(call) ?? route(call.snapshot, call.facts.target.key)?.endpoints[0]
      return endpoint === undefined ? null : (PROVIDERS[endpoint.provider] ?? endpoint.provider)
    },
    request: (body: Body | null) => (body instanceof ModelBody ? settingsOf(body) : {}),
    prompt: (body: Body | null) => (body instanceof ModelBody ? promptOf(body) : null),
    listen(body: Body | null, content: { readonly maxLength: number }) {
      if (!(body instanceof ModelBody) || !Object.hasOwn(OPERATIONS, body.dialect.method)) return null
      return body.dialect.operation === 'model.embed' ? new EmbeddingObserver() : new ResponseObserver(content)
    },
  }
}

function settingsOf({ value, request }: ModelBody): Record<string, string | number | boolean | readonly string[]> {
  const settings: Record<string, number | boolean | readonly string[]> = {}
  for (const [member, attribute] of NUMBERS) {
    const number = value[member]
    if (typeof number === 'number') settings[attribute] = number
  }
  if (request.maxTokens !== null) settings['gen_ai.request.max_tokens'] = request.maxTokens
  if (request.choices > 1) settings['gen_ai.request.choice.count'] = request.choices
  if (request.stream) settings['gen_ai.request.stream'] = true
  const stops = stopsOf(value.stop ?? value.stop_sequences)
  if (stops.length > 0) settings['gen_ai.request.stop_sequences'] = stops
  return settings
}

function stopsOf(stop: unknown): readonly string[] {
  const all: readonly unknown[] = Array.isArray(stop) ? stop : [stop]
  const texts = all.filter((one) => typeof one === 'string')
  return texts.slice(0, MAX_STOPS).map((text) => text.slice(0, MAX_STOP_LENGTH))
}
