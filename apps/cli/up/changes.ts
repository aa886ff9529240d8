import { createHash } from 'node:crypto'
import { canonicalJson } from '@plat/core'
import { type Declared, partsOfLine, type Render } from '@plat/operator'
import type { Manifest } from '@plat/resources'
import type { PlatFolder } from '../shared/home.ts'
import { type FollowedGateway, StartFileChanges } from './start-files.ts'

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

/** Returns a function that finds what has changed since its last call, or since now, and brings it into force where it can: one line each. */
export async function createChangeFinder(parts: {
  readonly home: PlatFolder
  readonly render: Pick<Render, 'declared' | 'refused'>
  readonly served: FollowedGateway
}): Promise<() => Promise<readonly string[]>> {
  const { home, render, served } = parts
  const files = new StartFileChanges(home, served)
  await files.begin()
  let declared: Declared = render.declared()
  let digests = digestsOf(declared)
  return async () => {
    const lines: string[] = []
    const current = render.declared()
    if (current !== declared) {
      const after = digestsOf(current)
      // A refused resource is not in force, and is reported as such.
      const refused = new Set(render.refused().map((line) => partsOfLine(line).object))
      const { policyReloadSeconds: reloadSeconds } = served.config
      lines.push(...changedResources(digests, after, { refused, reloadSeconds }))
      declared = current
      digests = after
    }
    lines.push(...(await files.find()))
    return lines
  }
}
