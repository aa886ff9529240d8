import path from 'node:path/posix'
import { type Finding, findingAt, type Source } from '../source.ts'
import { importsOf } from './imports.ts'

/** The files that each file imports, with the offset of the import. */
type Graph = Map<string, Map<string, number>>

/** Files that import one another cannot be understood one by one, also where only types are imported. */
export function importCycles(sources: readonly Source[]): readonly Finding[] {
  const graph = cyclicPart(importGraph(sources))
  const reported = new Set<string>()
  return sources.flatMap((source) => {
    const cycle = reported.has(source.path) ? null : cycleOf(graph, source.path)
    if (cycle === null) return []
    for (const file of cycle) reported.add(file)
    const message = `${[...cycle, source.path].join(' -> ')}: move what they share into the file that owns it`
    return [findingAt(source, graph.get(source.path)?.get(cycle[1] ?? source.path) ?? 0, 'import-cycle', message)]
  })
}

function importGraph(sources: readonly Source[]): Graph {
  const paths = new Set(sources.map(({ path }) => path))
  return new Map(
    sources.map((source) => {
      const edges = importsOf(source).flatMap(({ from, start }) => {
        const target = targetsOf(source.path, from).find((file) => paths.has(file))
        return target === undefined ? [] : [[target, start] as const]
      })
      return [source.path, new Map(edges)]
    }),
  )
}

/** Where a module may be: an own file, a package's face, or one of its other entries. */
function targetsOf(importer: string, from: string): readonly string[] {
  if (from.startsWith('.')) return [path.join(path.dirname(importer), from)]
  const [scope, name, ...entry] = from.split('/')
  if (scope !== '@plat') return []
  return ['packages', 'services', 'apps'].map(
    (area) => `${path.join(area, name ?? '', ...(entry.length > 0 ? entry : ['index']))}.ts`,
  )
}

/** Removes files that no cycle contains: those that import none of the others, again and again. */
function cyclicPart(graph: Graph): Graph {
  const rest: Graph = new Map(graph)
  for (let before = Infinity; rest.size < before; ) {
    before = rest.size
    for (const [file, edges] of rest) if (![...edges.keys()].some((target) => rest.has(target))) rest.delete(file)
  }
  return rest
}

/** The shortest cycle that contains a file, beginning with it; null if there is none. */
function cycleOf(graph: Graph, start: string): readonly string[] | null {
  const importers = new Map<string, string>()
  const queue = [start]
  for (const file of queue) {
    for (const target of graph.get(file)?.keys() ?? []) {
      if (target === start) return chainTo(file, importers)
      if (importers.has(target)) continue
      importers.set(target, file)
      queue.push(target)
    }
  }
  return null
}

function chainTo(last: string, importers: ReadonlyMap<string, string>): readonly string[] {
  const chain = [last]
  for (let file = importers.get(last); file !== undefined; file = importers.get(file)) chain.unshift(file)
  return chain
}
