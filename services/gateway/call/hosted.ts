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
