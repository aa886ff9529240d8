import { glob } from '@plat/core'
import type { ServerEntry } from '@plat/resources/rendered'
import { labelsByTrust, labelsOfClass, type Target, type ToolLabels } from '../../call/index.ts'

/** Taint labels of a server's tools (docs/spec/crds.md, `toolLabels`), by name or glob. */
export interface TaintRules {
  /** Returns the labels of a tool's results; null for other data, such as a resource. */
  of(tool: string | null): ToolLabels
  /** Labels of descriptions of the server, such as its tool list, which carry no data. */
  readonly described: ToolLabels
  /** Whether any of the rules clears labels. */
  readonly clears: boolean
}

type Entry = NonNullable<ServerEntry['toolLabels']>[string]

/** All entries that match a tool apply. The class of the server's data is a label, too. */
export function taintRules(
  trust: Target['trust'],
  entries: Readonly<Record<string, Entry>> = {},
  dataClass: Target['dataClass'] = 'internal',
): TaintRules {
  const described = labelsByTrust[trust]
  const ofClass = labelsOfClass(dataClass)
  const ofAll = ofClass.length === 0 ? described : joined([described, { taints: ofClass }])
  const all = Object.entries(entries)
  if (all.length === 0) return { of: () => ofAll, described, clears: false }
  const patterned = all
    .filter(([name]) => name.includes('*'))
    .map(([name, entry]) => ({ fits: glob(name), labels: joined([ofAll, entry]) }))
  const exact = new Map<string, ToolLabels>()
  for (const [name, entry] of all) {
    const others = patterned.filter(({ fits }) => fits(name)).map(({ labels }) => labels)
    if (!name.includes('*')) exact.set(name, joined([ofAll, entry, ...others]))
  }
  const byPattern = (tool: string) => {
    const found = patterned.filter(({ fits }) => fits(tool)).map(({ labels }) => labels)
    const [first = ofAll] = found
    return found.length > 1 ? joined(found) : first
  }
  return {
    of: (tool) => (tool === null ? ofAll : (exact.get(tool) ?? byPattern(tool))),
    described,
    clears: all.some(([, { clearTaints = [] }]) => clearTaints.length > 0),
  }
}

function joined(entries: readonly Partial<ToolLabels>[]): ToolLabels {
  const all = (part: keyof ToolLabels) => [...new Set(entries.flatMap((entry) => entry[part] ?? []))]
  return { taints: all('taints'), clearTaints: all('clearTaints'), sinks: all('sinks') }
}
