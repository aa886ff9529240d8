import { switchedOnTools } from '../../call/index.ts'

/** Tools that the agent itself runs. Any other runs at the provider, where nobody governs it. */
const OWN_TOOLS: ReadonlySet<unknown> = new Set(['function', 'custom'])
/** Anthropic's own definitions of tools that the agent runs. */
const OWN_DEFINITIONS = /^(?:bash|text_editor|memory)_\d{8}$/

const NO_TOOLS: ReadonlySet<string> = new Set()

/** Words of docs/spec/crds.md for types that providers name otherwise. */
const WORDS: Readonly<Record<string, string>> = {
  computer: 'computer_use',
  computer_use_preview: 'computer_use',
  web_search_preview: 'web_search',
  google_search_retrieval: 'google_search',
}

/**
 * The first provider-hosted tool that a request asks for and its route does not allow (docs/spec/crds.md, `model.providerTools`); null: none.
 * A list names tools by their word, `web_search`, which stands for each of its versions, or by one version, `web_search_20250305`. What
 * connects the provider to MCP servers is never allowed: its calls would pass no gateway.
 */
export function hostedTool(body: unknown, allowed: ReadonlySet<string>, method: string): string | null {
  if (typeof body !== 'object' || body === null) return null
  if ('mcp_servers' in body && body.mcp_servers !== null) return 'mcp'
  const switched = switchedOnTools(body).find((word) => !allowed.has(word))
  if (switched !== undefined) return switched
  if (!('tools' in body) || !Array.isArray(body.tools)) return null
  const isAnthropic = method.startsWith('messages')
  for (const tool of body.tools) {
    const type: unknown = typeof tool === 'object' && tool !== null && 'type' in tool ? tool.type : undefined
    if (isAnthropic ? isOwnOfAnthropic(tool, type) : OWN_TOOLS.has(type)) continue
    if (typeof type !== 'string') return 'a tool without a type'
    if (!isAllowed(type, allowed)) return type.slice(0, 64)
  }
  return null
}

/**
 * Whether the answer to a request that its route allows may hold content from outside: tools of the provider may run, or the provider adds
 * what it keeps and the gateway cannot see.
 */
export function bringsForeignContent(body: unknown, method: string): boolean {
  return keptByProvider(body, method) || hostedTool(body, NO_TOOLS, method) !== null
}

/**
 * Whether a request refers to content at the provider: earlier responses, conversations, stored items and prompts (which may name tools),
 * files that tools read, and containers of code.
 */
function keptByProvider(body: unknown, method: string): boolean {
  if (!isObject(body)) return false
  if (isSet(body.container)) return true
  if (method !== 'responses') return false
  if (isSet(body.previous_response_id) || isSet(body.conversation)) return true
  if (isObject(body.prompt)) return true
  return Array.isArray(body.input) && body.input.some((item) => isObject(item) && isReference(item))
}

/** An item that names what the provider keeps; without a type it is a reference where it has nothing but an id. */
function isReference({ type, content, id }: Readonly<Record<string, unknown>>): boolean {
  return type === 'item_reference' || (!isSet(type) && !isSet(content) && isSet(id))
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Providers read null as absent. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** There a tool without a type is the agent's own, and says its schema. */
function isOwnOfAnthropic(tool: unknown, type: unknown): boolean {
  if (typeof type === 'string') return type === 'custom' || OWN_DEFINITIONS.test(type)
  return type === undefined && typeof tool === 'object' && tool !== null && 'input_schema' in tool
}

function isAllowed(type: string, allowed: ReadonlySet<string>): boolean {
  if (type.startsWith('mcp')) return false
  const word = type.replace(/_(?:\d{8}|\d{4}_\d{2}_\d{2})$/, '')
  return allowed.has(type) || allowed.has(word) || allowed.has(WORDS[word] ?? word)
}
