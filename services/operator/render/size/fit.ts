import type { Manifest } from '@plat/resources'
import { type Declared, objectKeyOf } from '../declared.ts'
import { type Everything, type FileName, type RenderContext, renderEverything, renderFile } from '../everything.ts'
import { CONFIG_MAP_BYTES, isWithinLimits, roomOf } from './packed.ts'
import { exceededShares } from './shares.ts'

type Owned = Manifest<'Agent' | 'MCPServer' | 'ToolPolicy' | 'BudgetPolicy' | 'MemoryStore'>

/** Kinds of which a file has entries. Of what is not here, no object is left out. */
const SOURCES: Partial<Record<FileName, readonly Owned['kind'][]>> = {
  'policies.json': ['Agent', 'ToolPolicy'],
  'budgets.json': ['Agent', 'BudgetPolicy'],
  'upstreams.json': ['Agent', 'MCPServer'],
  'models.json': ['Agent'],
  'agents.json': ['Agent'],
  'memory.json': ['MemoryStore'],
}

/** Parts of the limit that are tried in turn: what fits by itself may take a little more room together. */
const MARGINS = [0.95, 0.8, 0.5]

/**
 * Renders everything so that each file fits into a ConfigMap and a gateway accepts it. Where one would not fit, namespaces share it evenly,
 * and objects of those above their share are left out, the largest first; calls that they limit are denied. The operator's own namespace
 * comes first: a file that it fills alone is returned as it is.
 */
export async function renderWithinShares(declared: Declared, context: RenderContext): Promise<Everything> {
  let rendered = renderEverything(declared, context)
  const oversized = new Map<string, string>()
  for (const margin of MARGINS) {
    const limit = CONFIG_MAP_BYTES * margin
    const exceeding = await exceedingFiles(rendered)
    if (exceeding.length === 0) break
    for (const { name, sources } of exceeding)
      for (const key of await leftOut({ declared, context, name, sources }, limit)) oversized.set(key, name)
    rendered = renderEverything({ ...declared, oversized }, context)
  }
  return rendered
}

interface Exceeding {
  readonly name: FileName
  readonly sources: readonly Owned['kind'][]
}

async function exceedingFiles({ files }: Everything): Promise<readonly Exceeding[]> {
  const exceeding: Exceeding[] = []
  for (const { name, packed, fullness } of files) {
    const sources = SOURCES[name]
    if (sources !== undefined && (fullness > 1 || !isWithinLimits(await packed()))) exceeding.push({ name, sources })
  }
  return exceeding
}

interface Overfull extends Exceeding {
  readonly declared: Declared
  readonly context: RenderContext
}

/** Keys of the objects to leave out of one file. */
async function leftOut(file: Overfull, limit: number): Promise<readonly string[]> {
  const { agents, servers, policies, budgets, memory, home } = file.declared
  const all: Owned[] = [...agents, ...servers, ...policies, ...budgets, ...memory]
  const owned = Map.groupBy(all, ({ metadata }) => metadata.namespace)
  const needed = new Map<string, number>()
  for (const [namespace, objects] of owned) needed.set(namespace, await roomWith(file, objects))
  const left = limit - (needed.get(home ?? '') ?? 0)
  needed.delete(home ?? '')
  if (left <= 0) return []
  const keys: string[] = []
  for (const [namespace, share] of exceededShares(needed, left))
    keys.push(...(await largest(file, owned.get(namespace) ?? [], share)))
  return keys
}

/** Keys of the fewest objects, the largest first, without which the others fit into the share. */
async function largest(file: Overfull, objects: readonly Owned[], share: number): Promise<readonly string[]> {
  const { source = [], other = [] } = Object.groupBy(objects, ({ kind }) =>
    file.sources.includes(kind) ? 'source' : 'other',
  )
  const candidates = source
    .map((object) => ({ object, key: objectKeyOf(object), size: JSON.stringify(object.spec).length }))
    .toSorted((a, b) => b.size - a.size || (a.key < b.key ? -1 : 1))
  let low = 0
  let high = candidates.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const remaining = candidates.slice(middle).map(({ object }) => object)
    if ((await roomWith(file, [...other, ...remaining])) <= share) high = middle
    else low = middle + 1
  }
  return candidates.slice(0, low).map(({ key }) => key)
}

/** Room that a file takes which is rendered from these objects alone, in bytes of a ConfigMap. */
async function roomWith({ name, declared, context }: Overfull, objects: readonly Owned[]): Promise<number> {
  const of = <K extends Owned['kind']>(kind: K) => objects.filter((object) => isOf(kind, object))
  const only = {
    ...declared,
    agents: of('Agent'),
    servers: of('MCPServer'),
    policies: of('ToolPolicy'),
    budgets: of('BudgetPolicy'),
    memory: of('MemoryStore'),
  }
  const file = renderFile(name, only, context)
  return Math.max(await roomOf(file.compact()), Math.ceil(file.fullness * CONFIG_MAP_BYTES))
}

function isOf<K extends Owned['kind']>(kind: K, object: Owned): object is Manifest<K> & Owned {
  return object.kind === kind
}
