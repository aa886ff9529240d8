/** Base64 on one line. Whatever is called binary and reads otherwise is text: servers choose the names of members. */
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/

/** Members that hold no text for a reader, as long as they hold what they are for: binary content, and what it is. */
const NO_TEXT: ReadonlyMap<string, RegExp> = new Map([
  ['blob', BASE64],
  ['mimeType', /^[\w.+-]{1,127}\/[\w.+-]{1,127}(?:; ?[\w-]{1,32}=[\w.-]{1,64})?$/],
])

/** Content that stands in a URL, and is no text. */
const INLINE_DATA = /^data:[^,\s]{0,256};base64,[A-Za-z0-9+/_-]*={0,2}$/

/**
 * All text in a JSON value, in its order, with line ends between: what a model would read of it. A member's name counts where it is prose,
 * and each text counts once. Empty: there is none.
 */
export function textOf(value: unknown): string {
  const texts = new Set<string>()
  collect(value, texts)
  return [...texts].join('\n')
}

/**
 * The text of a message of JSON-RPC: of its result, its error, or what it tells or asks. Empty for a mere sign of life. Of what is no such
 * message all text counts.
 */
export function textOfMessage(message: unknown): string {
  const { result, error, params, method } = members(message)
  if (result !== undefined || error !== undefined) return textOf([result, error])
  if (method === undefined) return textOf(message)
  // The rest of it is for the client: which call it is about, and how far that is.
  return method === 'notifications/progress' ? textOf(members(params).message) : textOf(params)
}

/** Items and blocks of model answers that hold what a tool of the provider found or put out. */
const HOSTED = /_(?:tool_result|call|call_output)$/
/** The same for tools of the agent: the model calls them, and the agent responds. */
const OWN_CALLS: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call'])
/** Members that quote sources. */
const SOURCES: ReadonlySet<string> = new Set(['annotations', 'citations', 'search_results'])

/** The text of what tools of the provider brought into an answer of a model; empty: nothing. */
export function textOfHosted(answer: unknown): string {
  const found: unknown[] = []
  findHosted(answer, found)
  return found.length === 0 ? '' : textOf(found)
}

function findHosted(value: unknown, found: unknown[]): void {
  if (typeof value !== 'object' || value === null) return
  const type = 'type' in value ? value.type : undefined
  if (typeof type === 'string' && HOSTED.test(type) && !OWN_CALLS.has(type)) {
    found.push(value)
    return
  }
  for (const [name, member] of Object.entries(value)) {
    if (SOURCES.has(name)) found.push(member)
    else findHosted(member, found)
  }
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
      const noText = isBinary && name === 'data' ? BASE64 : NO_TEXT.get(name)
      if (typeof member === 'string' && noText?.test(member) === true) continue
      if (/\s/.test(name)) texts.add(name)
      collect(member, texts)
    }
  }
}
