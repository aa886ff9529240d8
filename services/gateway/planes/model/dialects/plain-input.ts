import { isObject, type JsonObject, member } from '@plat/core'
import { isSet } from './checks.ts'

/** Parts of requests whose tokens cost what those of text cost. */
const PARTS: ReadonlySet<unknown> = new Set([
  ...['text', 'refusal', 'image_url', 'file'],
  ...[
    'input_text',
    'output_text',
    'summary_text',
    'reasoning_text',
    'input_image',
    'input_file',
    'computer_screenshot',
  ],
  ...['thinking', 'redacted_thinking', 'tool_use', 'tool_result', 'image', 'document'],
])
/** Media types of the same; sound and video have other prices. */
const MEDIA = /^(?:image\/|text\/|application\/pdf\b)/
const DATA_URL = 'data:'

/**
 * Returns whether all input of a request costs what text costs, so that the context window of the model bounds its cost: texts, images and
 * documents, also those that the provider stores. False for sound, video, predicted output, stored prompts, and parts of unknown kinds.
 */
export function isPlainInput(value: JsonObject): boolean {
  // A stored prompt may bring tools that run at the provider.
  if (isSet(value.prediction) || isSet(value.audio) || isObject(value.prompt)) return false
  const messages = [...listOf(value.messages), ...listOf(value.input)]
  const contents = [...listOf(value.contents), value.systemInstruction]
  return (
    messages.every(isPlainMessage) && contents.every((one) => listOf(member(one, 'parts')).every(isPlainGooglePart))
  )
}

function isPlainMessage(message: unknown): boolean {
  if (isSet(member(message, 'audio'))) return false
  return [...partsOf(message, 'content'), ...partsOf(message, 'output')].every(isPlainPart)
}

function isPlainPart(part: unknown): boolean {
  if (!PARTS.has(member(part, 'type'))) return false
  const source = member(part, 'source')
  const urls = [
    member(part, 'image_url'),
    member(member(part, 'image_url'), 'url'),
    member(part, 'file_data'),
    member(member(part, 'file'), 'file_data'),
  ]
  return (
    urls.every(isPlainUrl) && isPlainType(member(source, 'media_type')) && partsOf(part, 'content').every(isPlainPart)
  )
}

function isPlainGooglePart(part: unknown): boolean {
  return ['inlineData', 'fileData'].every((name) => {
    const data = member(part, name)
    return !isSet(data) || (isSet(member(data, 'mimeType')) && isPlainType(member(data, 'mimeType')))
  })
}

/** Other URLs are those of images and documents, as the type of their part says. */
function isPlainUrl(url: unknown): boolean {
  return typeof url !== 'string' || !url.startsWith(DATA_URL) || isPlainType(url.slice(DATA_URL.length))
}

function isPlainType(type: unknown): boolean {
  return !isSet(type) || (typeof type === 'string' && MEDIA.test(type))
}

function partsOf(value: unknown, name: string): readonly unknown[] {
  return listOf(member(value, name))
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
