import type { Manifest } from '@plat/resources'
import type { PinsEntry } from '@plat/resources/rendered'
import type { Problem } from '../validate/problem.ts'
import { keyOf } from './declared.ts'

type ToolPins = NonNullable<Manifest<'MCPServer'>['spec']['toolPins']>

/** From what does least to what does most. */
const MODES = ['off', 'learn', 'enforce'] as const
const REACTIONS = ['alert', 'approve', 'hide'] as const

const DIGEST = /^sha256:[0-9a-f]{64}$/

const isDigest = ([, digest]: readonly [tool: string, digest: string]) => DIGEST.test(digest)

/** Returns a problem for each pin that is not a digest. */
export function pinProblems(path: string, { pins = {} }: ToolPins): Problem[] {
  return Object.entries(pins)
    .filter((pin) => !isDigest(pin))
    .map(([tool]) => ({ path: `${path}.pins[${tool}]`, why: 'must read sha256:<64 hex digits>' }))
}

/**
 * Merges the pins of a server with those of every ToolPolicy that names it. The stricter setting applies; any pin of a tool matches.
 * Returns null for mode `off`. Omits invalid digests, for which a gateway would refuse the whole file; their tools then count as
 * unpinned, and unpinned tools are not allowed.
 */
export function pinsOf({ spec }: Manifest<'MCPServer'>, policies: readonly ToolPins[]): PinsEntry | null {
  const all = [spec.toolPins ?? {}, ...policies]
  const mode = strictest(MODES, 'learn', all, (one) => one.mode)
  if (mode === 'off') return null
  const enforcing = all.filter((one) => (one.mode ?? 'learn') === mode)
  const pins: Record<string, string[]> = {}
  const named = all.flatMap((one) => Object.entries(one.pins ?? {}))
  const valid = named.filter(isDigest)
  for (const [tool, digest] of valid.toSorted(([a, x], [b, y]) => (a + x < b + y ? -1 : 1))) {
    const digests = pins[tool] ?? []
    if (!digests.includes(digest)) pins[tool] = [...digests, digest]
  }
  return {
    mode,
    onChange: strictest(REACTIONS, 'hide', enforcing, (one) => one.onChange),
    allowUnpinned: valid.length === named.length && enforcing.every((one) => one.allowUnpinned === true),
    pins,
  }
}

function strictest<T extends string>(
  order: readonly T[],
  usual: T,
  all: readonly ToolPins[],
  read: (one: ToolPins) => T | undefined,
): T {
  const ranks = all.map((one) => order.indexOf(read(one) ?? usual))
  return order[Math.max(...ranks)] ?? usual
}

/**
 * Which servers the ToolPolicies speak of. A name means the server that an agent of the policy's namespace reaches by it: the
 * namespace's own, or every one that is shared with it (the stricter wins, so several are not a problem here).
 */
export function policyPins(
  policies: readonly Manifest<'ToolPolicy'>[],
  servers: readonly Manifest<'MCPServer'>[],
): ReadonlyMap<string, readonly ToolPins[]> {
  const own = new Set(servers.map(keyOf))
  /** Keys of shared servers, by `<namespace of the user>/<name>`. */
  const shared = new Map<string, string[]>()
  for (const { metadata, spec } of servers) {
    for (const namespace of new Set(spec.allowedNamespaces)) {
      append(shared, `${namespace}/${metadata.name}`, `${metadata.namespace}/${metadata.name}`)
    }
  }
  const byKey = new Map<string, ToolPins[]>()
  for (const { metadata, spec } of policies) {
    for (const [name, pins] of Object.entries(spec.toolPins ?? {})) {
      const key = `${metadata.namespace}/${name}`
      for (const server of own.has(key) ? [key] : (shared.get(key) ?? [])) append(byKey, server, pins)
    }
  }
  return byKey
}

function append<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [value])
  else list.push(value)
}
