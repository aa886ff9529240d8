import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { canonicalJson } from '@plat/core'
import type { GatewayConfig } from '@plat/gateway'
import { type Declared, partsOfLine, type Render } from '@plat/operator'
import type { Manifest } from '@plat/resources'
import type { PlatFolder } from '../shared/home.ts'

/** Digests of the rendered resources, by `<Kind> <namespace>/<name>`. */
type DeclaredDigests = ReadonlyMap<string, string>

function digestsOf(declared: Declared): DeclaredDigests {
  const { agents, servers, policies, budgets, memory, sovereignty, tiers } = declared
  const all: readonly Manifest[] = [...agents, ...servers, ...policies, ...budgets, ...memory, ...sovereignty, ...tiers]
  return new Map(
    all.map(({ kind, metadata: { namespace, name }, spec }) => [keyOf(kind, namespace, name), digest(spec)]),
  )
}

function keyOf(kind: string, namespace: string, name: string): string {
  return namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
}

function digest(spec: unknown): string {
  return createHash('sha256').update(canonicalJson(spec)).digest('base64')
}

/** Above this number of changes they are counted, not listed. */
const LISTED_MAX = 20

/** Lines about resources that were added, changed or removed, with the time after which the gateway has read them. */
function changedResources(
  before: DeclaredDigests,
  after: DeclaredDigests,
  { refused, reloadSeconds }: { readonly refused: ReadonlySet<string>; readonly reloadSeconds: number },
): readonly string[] {
  const lines: string[] = []
  for (const [key, value] of after) {
    if (refused.has(key)) continue
    const old = before.get(key)
    if (old === undefined) lines.push(`added: ${key}`)
    else if (old !== value) lines.push(`changed: ${key}`)
  }
  for (const key of before.keys()) if (!after.has(key)) lines.push(`removed: ${key}`)
  const when = `in force within ${reloadSeconds} s`
  if (lines.length > LISTED_MAX) return [`${lines.length} resources changed; ${when}`]
  return lines.map((line) => `${line}; ${when}`)
}

/** Files beside `resources/` that are read at start. */
const READ_AT_START = ['gateway.json', 'exchange.json'] as const

/** Digests of the files that are read at start, by name; null: there is no file. */
type StartFiles = ReadonlyMap<string, string | null>

async function readStartFiles(home: PlatFolder, pricingFile: string): Promise<StartFiles> {
  // A prices.json that was there at start is followed by the gateway.
  const names = pricingFile === '' ? [...READ_AT_START, 'prices.json'] : READ_AT_START
  const digests = names.map(async (name) => {
    const bytes = await readFile(join(home.dir, name)).catch(() => null)
    return [name, bytes === null ? null : createHash('sha256').update(bytes).digest('base64')] as const
  })
  return new Map(await Promise.all(digests))
}

/** Lines about files that differ from those of the start. */
function outdatedFiles(atStart: StartFiles, now: StartFiles): readonly string[] {
  return [...now].flatMap(([name, value]) => {
    const old = atStart.get(name) ?? null
    if (old === value) return []
    const what = old === null ? 'is new' : value === null ? 'was removed' : 'has changed'
    return [`${name} ${what}, and is not in force: restart plat up`]
  })
}

/** Returns a function that finds what has changed since its last call, or since now: one line each. */
export async function createChangeFinder(parts: {
  readonly home: PlatFolder
  readonly render: Pick<Render, 'declared' | 'refused'>
  readonly config: Pick<GatewayConfig, 'pricingFile' | 'policyReloadSeconds'>
}): Promise<() => Promise<readonly string[]>> {
  const { home, render, config } = parts
  const atStart = await readStartFiles(home, config.pricingFile)
  let declared: Declared = render.declared()
  let digests = digestsOf(declared)
  let outdated: readonly string[] = []
  return async () => {
    const lines: string[] = []
    const current = render.declared()
    if (current !== declared) {
      const after = digestsOf(current)
      // A refused resource is not in force, and is reported as such.
      const refused = new Set(render.refused().map((line) => partsOfLine(line).object))
      lines.push(...changedResources(digests, after, { refused, reloadSeconds: config.policyReloadSeconds }))
      declared = current
      digests = after
    }
    const now = outdatedFiles(atStart, await readStartFiles(home, config.pricingFile))
    lines.push(...now.filter((line) => !outdated.includes(line)))
    outdated = now
    return lines
  }
}
