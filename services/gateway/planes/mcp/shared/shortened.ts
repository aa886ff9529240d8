import { type Denial, deny, type Identity, isDenial } from '../../../call/index.ts'
import type { ToolPlace } from './address.ts'
import type { CollectedMessage } from './collect.ts'
import { type ListKind, listKind, type NamedPage, namedPage } from './lists.ts'
import type { Naming } from './naming.ts'

/** Shortened names that are remembered for one token; the oldest is forgotten, and looked up again. */
const MAX_NAMES = 1_000
/** Pages of a server's tools in which a shortened name is looked up. */
const MAX_PAGES = 64

type LoadTools = (page: {
  readonly cursor: string | null
  readonly kind: ListKind
}) => Promise<CollectedMessage | Denial | null>

/** The tools behind shortened names: remembered from lists, and looked up in the server's list otherwise. */
export class ShortenedNames {
  readonly #naming: Naming
  /** By the identity of a token, which lives as long as the token is cached. */
  readonly #names = new WeakMap<Identity, Map<string, string | null>>()

  constructor(naming: Naming) {
    this.#naming = naming
  }

  /** Returns a function that remembers the names of a list. A name that leads to two tools, on whatever pages, leads to neither. */
  seenBy(identity: Identity): (server: string, names: NamedPage['shortened']) => void {
    return (server, names) => {
      if (names.size === 0) return
      const known = this.#names.get(identity) ?? new Map<string, string | null>()
      this.#names.set(identity, known)
      for (const [name, tool] of names) {
        const key = keyOf(server, name)
        const before = known.get(key)
        known.delete(key)
        // A tool of another page must not take the calls of this one.
        known.set(key, before === undefined || before === tool ? tool : null)
      }
      for (const oldest of known.keys()) {
        if (known.size <= MAX_NAMES) break
        known.delete(oldest)
      }
    }
  }

  /** Resolves to the server's name of the tool, to null if it has none of this name, and to a denial if it has two. Never rejects. */
  async toolOf({ identity, server, prefix, shownName }: ToolPlace, load: LoadTools): Promise<string | Denial | null> {
    const known = this.#names.get(identity)?.get(keyOf(server, shownName))
    const kind = listKind('tools/list')
    if (known !== undefined) return known ?? ambiguous(server)
    if (kind === null) return null
    const see = this.seenBy(identity)
    let cursor: string | null = null
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const message: CollectedMessage | Denial | null = await load({ cursor, kind })
      if (message === null || isDenial(message) || message.value.error !== undefined) return null
      const page = await namedPage(message, { kind, naming: this.#naming, prefix })
      see(server, page.shortened)
      const tool = page.shortened.get(shownName)
      if (tool !== undefined) return tool ?? ambiguous(server)
      if (page.next === null) return null
      cursor = page.next
    }
    return null
  }
}

function ambiguous(server: string): Denial {
  return deny('not_found', `${server} has two tools of this name`)
}

function keyOf(server: string, name: string): string {
  return `${server}/${name}`
}
