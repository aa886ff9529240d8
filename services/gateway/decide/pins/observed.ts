import { readFile } from 'node:fs/promises'
import { readJournalLine } from '@plat/state'
import { decodePinEvent } from './events.ts'

/** Largest journal that is read for names, in bytes: what is beyond it is only used for warnings. */
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Returns the tools that each server `<namespace>/<name>` has offered, by the file of `pinStorePath`, also while a gateway writes to it. A
 * missing or damaged file has none.
 */
export async function readObservedTools(path: string): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const tools = new Map<string, Set<string>>()
  const text = path === '' ? '' : await readFile(path, 'utf8').catch(() => '')
  if (text.length > MAX_BYTES) return tools
  for (const line of text.split('\n')) {
    const entry = readEntry(line)
    if (entry === null) continue
    const known = tools.get(entry.server) ?? new Set()
    for (const tool of entry.tools) known.add(tool)
    tools.set(entry.server, known)
  }
  return tools
}

/** Returns null for a line that is damaged, or not written to its end yet. */
function readEntry(line: string): { readonly server: string; readonly tools: readonly string[] } | null {
  try {
    const entry = readJournalLine(line)
    return entry === null ? null : { server: entry.key, tools: entry.events.map((event) => decodePinEvent(event).tool) }
  } catch {
    return null
  }
}
