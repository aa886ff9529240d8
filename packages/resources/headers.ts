/** Headers that the gateway or HTTP itself writes, or that no hop carries on: a secret of type `headerSecret` cannot stand in them. */
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

/** Whether `headerName` (docs/spec/crds.md, MCPServer `auth`) names a header that is not free for a secret. */
export function isWrittenHeader(name: string): boolean {
  const lower = name.toLowerCase()
  return WRITTEN.has(lower) || lower.startsWith('mcp-')
}
