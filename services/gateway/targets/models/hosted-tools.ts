import { isObject } from '@plat/core'
import { definedTools, earlierContent, switchedOnTools } from '../../call/index.ts'

/** Tools that the agent runs. Any other runs at the provider, without governance. */
const OWN_TOOLS: ReadonlySet<unknown> = new Set(['function', 'custom'])
/** Tools defined by Anthropic that the agent runs. */
const OWN_DEFINITIONS = /^(?:bash|text_editor|memory)_\d{8}$/

const NO_TOOLS: ReadonlySet<string> = new Set()

/** Names of docs/spec/crds.md for types that providers name differently. */
const WORDS: Readonly<Record<string, string>> = {
  computer: 'computer_use',
  computer_use_preview: 'computer_use',
  web_search_preview: 'web_search',
  google_search_retrieval: 'google_search',
}

/**
 * Returns the first provider-hosted tool of a request that its route does not allow (docs/spec/crds.md, `model.providerTools`), or null.
 * A list names tools by name, `web_search`, which covers all its versions, or by version, `web_search_20250305`. Connections of the
 * provider to MCP servers are never allowed: those calls would bypass the gateway.
 */
export function hostedTool(body: unknown, allowed: ReadonlySet<string>, method: string): string | null {
  if (typeof body !== 'object' || body === null) return null
  if ('mcp_servers' in body && body.mcp_servers !== null) return 'mcp'
  const switched = switchedOnTools(body).find((word) => !allowed.has(word))
  if (switched !== undefined) return switched
  const tools = definedTools(body)
  if (GOOGLE_METHODS.has(method)) return hostedByGoogle(tools, allowed)
  const isAnthropic = method.startsWith('messages')
  for (const tool of tools) {
    const type: unknown = typeof tool === 'object' && tool !== null && 'type' in tool ? tool.type : undefined
    if (isAnthropic ? isOwnOfAnthropic(tool, type) : OWN_TOOLS.has(type)) continue
    if (typeof type !== 'string') return 'a tool without a type'
    if (!isAllowed(type, allowed)) return type.slice(0, 64)
  }
  return null
}

/** Endpoints of Google's API. */
const GOOGLE_METHODS: ReadonlySet<string> = new Set(['generateContent', 'countTokens'])

/** Google: each member of a tool is a kind of tools, and `functionDeclarations` are the agent's own. */
function hostedByGoogle(tools: readonly unknown[], allowed: ReadonlySet<string>): string | null {
  for (const tool of tools) {
    if (!isObject(tool)) return 'a tool without a type'
    for (const name of Object.keys(tool)) {
      const word = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      if (name !== 'functionDeclarations' && !isAllowed(word, allowed)) return word.slice(0, 64)
    }
  }
  return null
}

/**
 * Returns whether the response to an allowed request may hold foreign content: provider-hosted tools may run, or the provider adds
 * earlier content that the gateway cannot see.
 */
export function bringsForeignContent(body: unknown, method: string): boolean {
  return keptByProvider(body, method) || hostedTool(body, NO_TOOLS, method) !== null
}

/** Returns whether a request refers to content at the provider: earlier responses, and containers of code. */
function keptByProvider(body: unknown, method: string): boolean {
  if (!isObject(body)) return false
  if (isSet(body.container)) return true
  return earlierContent(body, method).length > 0
}

/** Providers treat null as absent. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** Anthropic: a tool without a type is the agent's own, with a schema. */
function isOwnOfAnthropic(tool: unknown, type: unknown): boolean {
  if (typeof type === 'string') return type === 'custom' || OWN_DEFINITIONS.test(type)
  return type === undefined && typeof tool === 'object' && tool !== null && 'input_schema' in tool
}

function isAllowed(type: string, allowed: ReadonlySet<string>): boolean {
  if (type.startsWith('mcp')) return false
  const word = type.replace(/_(?:\d{8}|\d{4}_\d{2}_\d{2})$/, '')
  return allowed.has(type) || allowed.has(word) || allowed.has(WORDS[word] ?? word)
}
