import { Readable } from 'node:stream'
import { type Call, type Fact, type Facts, Snapshots, type Target, unresolved } from '../index.ts'

/** Tool `add` of an untrusted server `notes`. */
export const testTarget: Target = {
  ...unresolved,
  kind: 'mcp',
  key: 'default/notes',
  server: 'notes',
  tool: 'add',
  dataClass: 'internal',
}

/** Returns a call of that tool in its first pass, without a body, with these facts. Tests override only the fields that they need. */
export function testCall<F extends Fact>(
  facts: Pick<Facts, F>,
  own: Partial<Omit<Call<never>, 'facts'>> = {},
): Call<F> {
  return {
    id: 'c',
    wire: { method: 'POST', path: '/mcp/notes', query: '', headers: {}, body: Readable.from([]), remote: '' },
    signal: new AbortController().signal,
    receivedAt: 0,
    snapshot: new Snapshots().current,
    retain: () => true,
    operation: 'mcp.call',
    method: 'tools/call',
    server: 'notes',
    name: 'add',
    body: null,
    parent: null,
    pass: 1,
    ...own,
    facts,
  }
}
