import type { Identity, Snapshot } from '../../../call/index.ts'
import type { Naming } from './naming.ts'

/** A server that a caller may use, with the prefix of its names; null: another server has this prefix. */
export interface NamedServer {
  readonly name: string
  readonly prefix: string | null
}

/** Returns the names of the servers that a caller may use, sorted; the same list while neither the token nor the servers change. */
export type CallableServers = (snapshot: Snapshot, caller: Identity) => readonly string[]

export class CallersServers {
  readonly #callable: CallableServers
  readonly #naming: Naming
  readonly #named = new WeakMap<readonly string[], NamedServers>()

  constructor(callable: CallableServers, naming: Naming) {
    this.#callable = callable
    this.#naming = naming
  }

  /** Returns the servers that a caller may use, sorted by name. */
  of(snapshot: Snapshot, caller: Identity): readonly NamedServer[] {
    return this.#namedOf(snapshot, caller).all
  }

  /** Returns the server with this prefix; null: the caller may use none. */
  withPrefix(snapshot: Snapshot, caller: Identity, prefix: string): string | null {
    return this.#namedOf(snapshot, caller).byPrefix.get(prefix) ?? null
  }

  #namedOf(snapshot: Snapshot, caller: Identity): NamedServers {
    const names = this.#callable(snapshot, caller)
    const known = this.#named.get(names)
    if (known !== undefined) return known
    const named = namedServers(names, this.#naming)
    this.#named.set(names, named)
    return named
  }
}

interface NamedServers {
  readonly all: readonly NamedServer[]
  readonly byPrefix: ReadonlyMap<string, string>
}

/** A server whose prefix is its name keeps it, whatever other servers are called. */
function namedServers(names: readonly string[], naming: Naming): NamedServers {
  const byPrefix = new Map(names.filter((name) => naming.prefixOf(name) === name).map((name) => [name, name]))
  for (const name of names) byPrefix.getOrInsert(naming.prefixOf(name), name)
  const all = names.map((name) => {
    const prefix = naming.prefixOf(name)
    return { name, prefix: byPrefix.get(prefix) === name ? prefix : null }
  })
  return { all, byPrefix }
}
