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

/** Returns the provider-hosted tools that a request body enables by members other than `tools`. */
export function switchedOnTools(body: object): readonly string[] {
  return Object.entries(body).flatMap(([name, value]) => {
    const tool = Object.hasOwn(SWITCHES, name) ? SWITCHES[name] : undefined
    return tool === undefined || value === null || value === undefined || tool.isOff(value) ? [] : [tool.word]
  })
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
  const items = listIn(body, 'input').flatMap((item) => listIn(item, 'tools'))
  const blocks = listIn(body, 'messages').flatMap((message) => listIn(message, 'content'))
  const changes = blocks.flatMap((block) => listIn(block, 'tool_changes'))
  return [...listIn(body, 'tools'), ...items, ...[...blocks, ...changes].flatMap(addedTool)].flatMap(withoutNamespace)
}

function listIn(value: unknown, name: string): readonly unknown[] {
  const list = isObject(value) ? value[name] : undefined
  return Array.isArray(list) ? list : []
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
