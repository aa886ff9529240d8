/** Placeholders of `sessions.traceURLTemplate` (docs/spec/gateway.md). */
export const PLACEHOLDERS: ReadonlySet<string> = new Set(['traceId', 'spanId', 'session', 'namespace'])

const PLACEHOLDER = /\{([^{}]*)\}/g

export function placeholdersIn(template: string): readonly string[] {
  return [...template.matchAll(PLACEHOLDER)].map(([, name = '']) => name)
}

interface Recorded {
  readonly rec: Readonly<Record<string, unknown>>
}

/** Adds `traceUrl` to a record that names a trace; returns it unchanged without a template. */
export function withTraceUrl<L extends Recorded>(line: L, template: string): L | (L & { readonly traceUrl: string }) {
  const { rec } = line
  if (template === '' || typeof rec.traceId !== 'string') return line
  return { ...line, traceUrl: template.replace(PLACEHOLDER, (_, name: string) => encoded(rec[name])) }
}

/** Encodes a value so that it stays one component of the URL. */
function encoded(value: unknown): string {
  return typeof value === 'string' ? encodeURIComponent(value) : ''
}
