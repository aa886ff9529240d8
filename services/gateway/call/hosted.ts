import { isObject } from '@plat/core'

/** Request members that enable provider-hosted tools without `tools`, with their name in `providerTools` and the values that disable them. */
const SWITCHES: Readonly<Record<string, { readonly word: string; readonly isOff: (value: unknown) => boolean }>> = {
  web_search_options: { word: 'web_search', isOff: () => false },
  // xAI
  search_parameters: { word: 'web_search', isOff: isModeOff },
  // Qwen
  enable_search: { word: 'web_search', isOff: (value) => value === false },
  // OpenRouter
  plugins: { word: 'web_search', isOff: isEmptyList },
  // Azure OpenAI
  data_sources: { word: 'file_search', isOff: isEmptyList },
}

/** Names of models of OpenAI, Perplexity, OpenRouter and Groq that search without being requested to. */
const SEARCHING =
  /(?:-search-preview|-search-api|-deep-research)(?:-|$)|(?:^|\/)sonar(?:-|$)|:online$|(?:^|\/)compound(?:-|$)/i

const SWITCHED = Object.entries(SWITCHES)
const NO_WORDS: readonly string[] = []
const NO_TOOLS: readonly unknown[] = []

/** Returns the provider-hosted tools that a request body enables by members other than `tools`. */
export function switchedOnTools(body: object): readonly string[] {
  let words: string[] | null = null
  for (const [name, { word, isOff }] of SWITCHED) {
    const value = isObject(body) ? body[name] : undefined
    if (value === null || value === undefined || isOff(value)) continue
    words ??= []
    words.push(word)
  }
  return words ?? NO_WORDS
}

/** Returns true if a model searches without any tool in the request. */
export function searchesByItself(model: string | null): boolean {
  return model !== null && SEARCHING.test(model)
}

function isModeOff(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'mode' in value && value.mode === 'off'
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}

/** Returns every tool that a request body defines: in `tools`, and in parts of the conversation that add tools. */
export function definedTools(body: object): readonly unknown[] {
  const items = listsIn(listIn(body, 'input'), 'tools')
  const blocks = listsIn(listIn(body, 'messages'), 'content')
  const changes = listsIn(blocks, 'tool_changes')
  const tools = listIn(body, 'tools')
  // Most requests have none, or only `tools`.
  if (items.length === 0 && blocks.length === 0) return tools.length === 0 ? tools : tools.flatMap(withoutNamespace)
  return [...tools, ...items, ...[...blocks, ...changes].flatMap(addedTool)].flatMap(withoutNamespace)
}

function listIn(value: unknown, name: string): readonly unknown[] {
  const list = isObject(value) ? value[name] : undefined
  return Array.isArray(list) ? list : NO_TOOLS
}

/** Returns the elements of the lists that the elements of a list have as this member. */
function listsIn(values: readonly unknown[], name: string): readonly unknown[] {
  return values.some((value) => listIn(value, name) !== NO_TOOLS)
    ? values.flatMap((value) => listIn(value, name))
    : NO_TOOLS
}

/** OpenAI: a namespace groups functions and custom tools. */
function withoutNamespace(tool: unknown): readonly unknown[] {
  return isObject(tool) && tool.type === 'namespace' && Array.isArray(tool.tools) ? tool.tools : [tool]
}

/** Anthropic: the tool that a block of a message adds. A reference names a tool that is defined elsewhere in the request. */
function addedTool(block: unknown): readonly unknown[] {
  if (!isObject(block) || block.type !== 'tool_addition') return []
  const { tool } = block
  if (isObject(tool) && tool.type === 'tool_reference') return []
  return [isObject(tool) && tool.type === 'tool_definition' ? tool.definition : tool]
}
