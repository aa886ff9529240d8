/** One line of base64. Members named as binary with other content count as text: servers choose the names. */
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/

/** Members without text as long as they have the expected content: binary data and its type. */
const NO_TEXT: ReadonlyMap<string, RegExp> = new Map([
  ['blob', BASE64],
  ['mimeType', /^[\w.+-]{1,127}\/[\w.+-]{1,127}(?:; ?[\w-]{1,32}=[\w.-]{1,64})?$/],
])

/** Inline data in a URL is not text. */
const INLINE_DATA = /^data:[^,\s]{0,256};base64,[A-Za-z0-9+/_-]*={0,2}$/

/**
 * Returns all text in a JSON value, in order, separated by line feeds, as a model would read it. Member names count if they are prose,
 * and each text counts once. Empty if there is none.
 */
export function textOf(value: unknown): string {
  const texts = new Set<string>()
  collect(value, texts)
  return [...texts].join('\n')
}

/**
 * Returns the text of a JSON-RPC message: of its result, error or parameters. Empty for a keep-alive. Of other content all text
 * counts.
 */
export function textOfMessage(message: unknown): string {
  const { result, error, params, method } = members(message)
  if (result !== undefined || error !== undefined) return textOf([result, error])
  if (method === undefined) return textOf(message)
  // The other members are for the client: the call and its progress.
  return method === 'notifications/progress' ? textOf(members(params).message) : textOf(params)
}

/** Items and blocks of model responses with results of provider-hosted tools. */
const HOSTED = /_(?:tool_result|call|call_output)$/
/** The same for tools of the agent: the model calls them, and the agent responds. */
const OWN_CALLS: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call'])
/** Members that quote sources. */
const SOURCES: ReadonlySet<string> = new Set(['annotations', 'citations', 'search_results'])

/** Returns the text of provider-hosted tools in a model response; empty if there is none. */
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
