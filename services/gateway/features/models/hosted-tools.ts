/** Tools that the agent itself runs. Any other runs at the provider, where nobody governs it. */
const OWN_TOOLS: ReadonlySet<unknown> = new Set(['function', 'custom'])

/**
 * The first provider-hosted tool that a chat completion asks for; null: none. Document 2, `model.providerTools`: what a route does not
 * list is refused, and lists are not built yet.
 */
export function hostedTool(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null
  if ('web_search_options' in body && body.web_search_options !== null) return 'web_search'
  if (!('tools' in body) || !Array.isArray(body.tools)) return null
  for (const tool of body.tools) {
    const type: unknown = typeof tool === 'object' && tool !== null && 'type' in tool ? tool.type : undefined
    if (!OWN_TOOLS.has(type)) return typeof type === 'string' ? type.slice(0, 64) : 'a tool without a type'
  }
  return null
}
