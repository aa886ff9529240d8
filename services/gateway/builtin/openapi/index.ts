import type { ApiTool } from '@plat/resources/rendered'
import type { BuiltinServer, Target, ToolLabels } from '../../call/index.ts'
import { type ApiParts, type ApiUpstream, apiTool } from './tool.ts'

/** The entry of an HTTP API among the servers. */
export interface ApiEntry extends ApiUpstream {
  readonly trust: Target['trust']
  readonly dataClass: Target['dataClass']
  readonly labels: { of(tool: string | null): ToolLabels; readonly described: ToolLabels }
}

/**
 * Returns a function that makes the MCP server of an HTTP API (docs/spec/crds.md, MCPServer `openapi`). Its calls pass the stages of every MCP call;
 * the HTTP request takes the place of forwarding, with the credential of the server.
 */
export function createApiServers(parts: ApiParts): (entry: ApiEntry, tools: readonly ApiTool[]) => BuiltinServer {
  return (entry, tools) => {
    const made = tools.map((tool) => apiTool(parts, entry, tool))
    const name = entry.key.slice(entry.key.indexOf('/') + 1)
    return {
      name,
      title: name,
      instructions: '',
      isRemote: true,
      trust: entry.trust,
      dataClass: entry.dataClass,
      labels: (tool) => (tool === null ? entry.labels.described : entry.labels.of(tool)),
      tools: () => made,
    }
  }
}
