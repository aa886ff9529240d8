/** Members that hold no text for a reader: binary content, and what it is. */
const NO_TEXT: ReadonlySet<string> = new Set(['blob', 'mimeType'])

/** Content that stands in a URL, and is no text. */
const INLINE_DATA = /^data:[^,]{0,256};base64,/

/**
 * All text in a JSON value, in its order, with line ends between: what a model would read of it. A member's name counts where it is prose,
 * and each text counts once. Empty: there is none.
 */
export function textOf(value: unknown): string {
  const texts = new Set<string>()
  collect(value, texts)
  return [...texts].join('\n')
}

/** The text of a message of JSON-RPC: of its result, its error, or what it tells or asks. Empty for a mere sign of life. */
export function textOfMessage(message: unknown): string {
  if (typeof message !== 'object' || message === null) return ''
  const { result, error, params, method } = members(message)
  if (result !== undefined || error !== undefined) return textOf([result, error])
  // The rest of it is for the client: which call it is about, and how far that is.
  return method === 'notifications/progress' ? textOf(members(params).message) : textOf(params)
}

function members(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function collect(value: unknown, texts: Set<string>): void {
  if (typeof value === 'string') {
    if (value !== '' && !INLINE_DATA.test(value)) texts.add(value)
  } else if (Array.isArray(value)) {
    for (const element of value) collect(element, texts)
  } else if (typeof value === 'object' && value !== null) {
    const isBinary = 'mimeType' in value && 'data' in value
    for (const [name, member] of Object.entries(value)) {
      if (NO_TEXT.has(name) || (isBinary && name === 'data')) continue
      if (name.includes(' ')) texts.add(name)
      collect(member, texts)
    }
  }
}
