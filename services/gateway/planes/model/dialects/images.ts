import { isObject, type JsonObject } from '@plat/core'

const IMAGE_PARTS: ReadonlySet<unknown> = new Set(['image_url', 'input_image', 'image'])
/** Members with lists of messages, and of a message with lists of parts. */
const LISTS = ['messages', 'input'] as const
const PARTS = ['content', 'output'] as const

/** Returns a request without its images, and their number. Google's parts have no type: their images are not found. */
export function withoutImages(value: JsonObject): { readonly value: JsonObject; readonly images: number } {
  let images = 0
  const ofParts = (holder: unknown): unknown => {
    if (!isObject(holder)) return holder
    const changed: { [name: string]: unknown } = { ...holder }
    for (const name of PARTS) {
      const parts = holder[name]
      if (!Array.isArray(parts)) continue
      const others = parts.filter((part) => !(isObject(part) && IMAGE_PARTS.has(part.type)))
      images += parts.length - others.length
      changed[name] = others.map(ofParts)
    }
    return changed
  }
  const rest: { [name: string]: unknown } = { ...value }
  for (const name of LISTS) {
    const list = value[name]
    if (Array.isArray(list)) rest[name] = list.map(ofParts)
  }
  return { value: rest, images }
}

/**
 * Most input tokens of one image, whatever its size: the maxima of the formulas that the providers publish. OpenAI: 2,833 tokens and 5,667 for each of
 * at most eight tiles (gpt-4o-mini, the most of its models). Anthropic: an image is made smaller until it has 4,784. Others have images
 * without a maximum, or other models than their own.
 */
const IMAGE_TOKENS: Readonly<Record<string, number>> = {
  openai: 48_169,
  'azure-openai': 48_169,
  anthropic: 4_784,
}

/** `openai` is the name of every server with OpenAI's API. */
const OPENAI = 'https://api.openai.com/'

/** Returns the most input tokens of one image at an endpoint; null: not known. */
export function imageTokensAtMost({
  provider,
  upstream,
}: {
  readonly provider: string
  readonly upstream: string
}): number | null {
  if (provider === 'openai' && !upstream.startsWith(OPENAI)) return null
  return IMAGE_TOKENS[provider] ?? null
}
