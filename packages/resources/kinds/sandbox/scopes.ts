import type { AgentSpec } from '../kinds.ts'

/** Scopes that a sandbox needs at the gateway, whatever its agent names (docs/spec/crds.md). */
const SCOPE_OF_PROFILE: Readonly<Record<string, string>> = {
  browser: 'tools:plat-egress',
  codeInterpreter: 'tools:plat-exec',
}

/** Returns the scopes that sessions of an Agent may be granted, and the names of its MCP servers (docs/spec/crds.md, `scopes`). */
export function grantsOf(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  spec: AgentSpec,
): { readonly scopes: readonly string[]; readonly tools: readonly string[] } {
  // Rules for web content imply the tool.
  const tools = [...(spec.tools ?? []).map((tool) => tool.name), ...(spec.web === undefined ? [] : ['plat-web'])]
  const ofProfile = spec.profile === undefined ? undefined : SCOPE_OF_PROFILE[spec.profile]
  const routes = [...(spec.model === undefined ? [] : [`${namespace}.${name}`]), ...(spec.modelRoutes ?? [])]
  const scopes = new Set([
    ...(spec.scopes ?? tools.map((tool) => `tools:${tool}`)),
    ...routes.map((route) => `models:${route}`),
    ...(spec.modelUses ?? []).flatMap((use) => routes.map((route) => `models.${use}:${route}`)),
    ...(ofProfile === undefined ? [] : [ofProfile]),
  ])
  return { scopes: [...scopes], tools }
}

/** Returns the path below which an agent finds its model: its private route, else all routes that it may use; null: it has none. */
export function modelPathOf(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  { model, modelRoutes = [] }: Pick<AgentSpec, 'model' | 'modelRoutes'>,
): string | null {
  if (model !== undefined) return `/llm/${namespace}.${name}/v1`
  return modelRoutes.length === 0 ? null : '/llm/v1'
}
