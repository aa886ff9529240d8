import type { WireRequest } from '../../../call/index.ts'
import { chat } from './chat.ts'
import { completions } from './completions.ts'
import type { Dialect } from './dialect.ts'
import { batchEmbedContents, embedContent } from './embed-content.ts'
import { embeddings } from './embeddings.ts'
import { countContents, generateContent, streamGenerateContent } from './generate.ts'
import { imageEdits, imageGenerations, speech, transcriptions, translations } from './media.ts'
import { countTokens, messages } from './messages.ts'
import { responses } from './responses.ts'

const DIALECTS: ReadonlyMap<string, Dialect> = new Map(
  [
    ...[chat, completions, responses, embeddings, messages, countTokens],
    ...[imageGenerations, imageEdits, speech, transcriptions, translations],
  ].map((dialect) => [dialect.method, dialect]),
)

/** The dialect of an endpoint below `/v1/`; null: it has no body, or there is none such. */
export function dialectOf(method: string): Dialect | null {
  return DIALECTS.get(method) ?? null
}

/** Endpoints of Google's API, by the word after the model in their path. */
const VERBS: ReadonlyMap<string, Dialect> = new Map([
  ['generateContent', generateContent],
  ['streamGenerateContent', streamGenerateContent],
  ['countTokens', countContents],
  ['embedContent', embedContent],
  ['batchEmbedContents', batchEmbedContents],
])

/** Returns the dialect of `models/<model>:<verb>` of Google's API; null: there is none such. */
export function dialectOfVerb(verb: string): Dialect | null {
  return VERBS.get(verb) ?? null
}

function isOfGoogle(path: string): boolean {
  return path.includes('/v1beta/') || VERBS.has(path.slice(path.lastIndexOf(':') + 1))
}

/** The dialect in which a request that was not read is refused. */
export function dialectOfRequest({ path, headers }: Pick<WireRequest, 'path' | 'headers'>): Dialect {
  if (isOfGoogle(path) || headers['x-goog-api-client'] !== undefined) return generateContent
  const isAnthropic = path.startsWith('/llm/anthropic/') || path.includes('/v1/messages')
  return isAnthropic || headers['anthropic-version'] !== undefined ? messages : chat
}
