import type { AgentSpec } from '../kinds.ts'

/** What a sandbox needs of the gateway, whatever scopes its agent names (docs/spec/crds.md). */
const SCOPE_OF_PROFILE: Readonly<Record<string, string>> = {
  browser: 'tools:plat-egress',
  codeInterpreter: 'tools:plat-exec',
}

/** What sessions of an Agent may be granted, and the names under which it reaches its MCP servers (docs/spec/crds.md, `scopes`). */
export function grantsOf(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  spec: AgentSpec,
): { readonly scopes: readonly string[]; readonly tools: readonly string[] } {
  // Whoever says what an agent may read of the web means it to have the tool.
  const tools = [...(spec.tools ?? []).map((tool) => tool.name), ...(spec.web === undefined ? [] : ['plat-web'])]
  const ofProfile = spec.profile === undefined ? undefined : SCOPE_OF_PROFILE[spec.profile]
  const scopes = new Set([
    ...(spec.scopes ?? tools.map((tool) => `tools:${tool}`)),
    ...(spec.model === undefined ? [] : [`models:${namespace}.${name}`]),
    ...(ofProfile === undefined ? [] : [ofProfile]),
  ])
  return { scopes: [...scopes], tools }
}
