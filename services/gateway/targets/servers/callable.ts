import { type Identity, isDenial, type Snapshot } from '../../call/index.ts'
import type { Registry } from './registry.ts'
import { type MissingScopes, registrySlot, toolsScope } from './stage.ts'

const SCOPE = 'tools:'

interface Callable {
  readonly registry: Registry
  readonly names: readonly string[]
}

/** Returns a function that lists the servers of a caller: those of the scopes of its token that its name resolves to. */
export function createCallable(
  missingScopes: MissingScopes = toolsScope,
): (snapshot: Snapshot, caller: Identity) => readonly string[] {
  /** By the identity of a token, which lives as long as the token is cached. */
  const known = new WeakMap<Identity, Callable>()
  return (snapshot, caller) => {
    const registry = snapshot.get(registrySlot)
    const before = known.get(caller)
    if (before?.registry === registry) return before.names
    const names = [...caller.scopes]
      .filter((scope) => scope.startsWith(SCOPE))
      .map((scope) => scope.slice(SCOPE.length))
      .filter((name) => missingScopes(caller, name, null) === null && !isDenial(registry.resolve(caller, name)))
      .sort()
    known.set(caller, { registry, names })
    return names
  }
}
