import { elementSpans, findSpan, mapInSlices, member } from '@plat/core'
import { withValue } from '../message.ts'
import type { CollectedMessage } from './collect.ts'
import { type Naming, sharedUri, withServer } from './naming.ts'

/** A list of the protocol. */
export interface ListKind {
  readonly method: string
  /** The member of results with the entries. */
  readonly entries: string
  /** The member of an entry that names it. */
  readonly key: 'name' | 'uri' | 'uriTemplate' | 'taskId'
  /** The capability of servers that have such a list. */
  readonly capability: string
  /** The notification of its change; absent: there is none. */
  readonly changed?: string
}

const TOOLS_CHANGED = 'notifications/tools/list_changed'
const PROMPTS_CHANGED = 'notifications/prompts/list_changed'
const RESOURCES_CHANGED = 'notifications/resources/list_changed'

const KINDS: readonly ListKind[] = [
  { method: 'tools/list', entries: 'tools', key: 'name', capability: 'tools', changed: TOOLS_CHANGED },
  { method: 'prompts/list', entries: 'prompts', key: 'name', capability: 'prompts', changed: PROMPTS_CHANGED },
  { method: 'resources/list', entries: 'resources', key: 'uri', capability: 'resources', changed: RESOURCES_CHANGED },
  {
    method: 'resources/templates/list',
    entries: 'resourceTemplates',
    key: 'uriTemplate',
    capability: 'resources',
    changed: RESOURCES_CHANGED,
  },
  { method: 'tasks/list', entries: 'tasks', key: 'taskId', capability: 'tasks' },
]

/** Returns the list that a method requests; null: it requests none. */
export function listKind(method: string): ListKind | null {
  return KINDS.find((kind) => kind.method === method) ?? null
}

/** The entries of one server's page, named as at the address of all servers. */
export interface NamedPage {
  /** JSON of each entry; bytes that need no change are those of the server. */
  readonly entries: readonly Uint8Array[]
  /** The server's name of each entry whose name was shortened, by the shortened one; null: two names were shortened to it. */
  readonly shortened: ReadonlyMap<string, string | null>
  /** The server's next page; null: this was the last one. */
  readonly next: string | null
  readonly bytes: number
}

/**
 * Returns the entries of a page of a server, in slices: a page has up to 100,000. A name that two entries were shortened to leads to neither, so both
 * are removed.
 */
export async function namedPage(
  { json, value }: CollectedMessage,
  { kind, naming, prefix }: { readonly kind: ListKind; readonly naming: Naming; readonly prefix: string },
): Promise<NamedPage> {
  const result = member(value, 'result')
  const list = member(result, kind.entries)
  const span = findSpan(json, ['result', kind.entries])
  const next = member(result, 'nextCursor')
  const end = { next: typeof next === 'string' ? next : null, bytes: json.byteLength }
  if (!Array.isArray(list) || span === null) return { entries: [], shortened: new Map(), ...end }
  const shortened = new Map<string, string | null>()
  const names = await mapInSlices(list, (entry: unknown) => {
    const own = String(member(entry, kind.key))
    const name = prefixedName(own, { kind, naming, prefix })
    // Also a name that merely looks shortened is stored, so that a call of it finds the tool that has it.
    if (naming.isShortened(name)) addShortened(shortened, name, own)
    return name
  })
  const entries = await mapInSlices(elementSpans(json, span[0]), ([start, stop], at) => {
    const name = names[at]
    if (name === undefined || shortened.get(name) === null) return null
    return withValue(json.subarray(start, stop), [kind.key], Buffer.from(JSON.stringify(name)))
  })
  return { entries: entries.filter((entry) => entry !== null), shortened, ...end }
}

function prefixedName(
  name: string,
  { kind, naming, prefix }: { readonly kind: ListKind; readonly naming: Naming; readonly prefix: string },
): string {
  if (kind.key === 'taskId') return withServer(name, prefix)
  if (kind.key !== 'name') return sharedUri(prefix, name)
  return kind.entries === 'tools' ? naming.toolName(prefix, name) : naming.join(prefix, name)
}

function addShortened(found: Map<string, string | null>, name: string, own: string): void {
  const known = found.get(name)
  found.set(name, known === undefined || known === own ? own : null)
}
