/** Headers written by the gateway or by HTTP itself, and hop-by-hop headers: a `headerSecret` cannot use them. */
const WRITTEN: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'last-event-id',
  'proxy-connection',
  'te',
  'traceparent',
  'tracestate',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
])

/** Returns whether `headerName` (docs/spec/crds.md, MCPServer `auth`) is reserved. */
export function isWrittenHeader(name: string): boolean {
  const lower = name.toLowerCase()
  return WRITTEN.has(lower) || lower.startsWith('mcp-')
}
