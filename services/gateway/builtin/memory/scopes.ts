import { type Caller, type Denial, deny, type ToolCall, type ToolResult, toolFailure } from '../../call/index.ts'
import { type Owner, ownerOf, personOf, type TrustedIssuers } from './owner.ts'
import { type Store, storesSlot } from './stores.ts'

/** Redacts JSON before it is stored or returned. */
export interface Screen {
  stored(json: Uint8Array, call: ToolCall, where?: { readonly fixed: readonly (readonly string[])[] }): Redacted
  given(json: Uint8Array, call: ToolCall, where?: { readonly left: readonly string[] }): Redacted
}

/** A promise if the text is long. */
type Redacted = Uint8Array | Denial | Promise<Uint8Array | Denial>

export interface PlacesParts {
  readonly trusted: TrustedIssuers
  /** Returns a DLP profile by name, or null. */
  readonly screens: (profile: string) => Screen | null
}

/** Access of a call to a store. */
export interface MemoryScope {
  readonly store: Store
  readonly owner: Owner
  /** The person that it acts for, or null. */
  readonly person: string | null
  /** Null if the store has no profile. */
  readonly screen: Screen | null
}

/** Resolves each caller's own memory. */
export class MemoryScopes {
  readonly #parts: PlacesParts

  constructor(parts: PlacesParts) {
    this.#parts = parts
  }

  /** Whether the caller's namespace has no store: then there are no tools. */
  isEmpty({ identity, snapshot }: Caller): boolean {
    return snapshot.get(storesSlot).of(identity.namespace).size === 0
  }

  /** Returns why the caller must not use a store, or null; the tool itself reports unknown stores. */
  denial(name: string | undefined, caller: Caller): Denial | null {
    const place = this.find(name, caller)
    return place.kind === 'denial' ? place : null
  }

  /** Finds the named store of the caller's namespace, or the only one. */
  find(name: string | undefined, caller: Caller): (MemoryScope & { readonly kind: 'place' }) | Denial | Unknown {
    const { identity, snapshot } = caller
    const stores = snapshot.get(storesSlot).of(identity.namespace)
    const store = name === undefined ? onlyOf(stores) : stores.get(name)
    if (store === undefined) return unknown(stores)
    const owner = ownerOf(store, identity, this.#parts.trusted)
    if (typeof owner === 'string') return deny('policy_denied', owner)
    const screen = store.dlpProfile === '' ? null : this.#parts.screens(store.dlpProfile)
    if (screen === null && store.dlpProfile !== '') {
      return deny(
        'dlp_denied',
        `the store ${store.name} names the DLP profile ${store.dlpProfile}, which is not in dlpProfiles of this gateway`,
      )
    }
    return { kind: 'place', store, owner, person: personOf(identity, this.#parts.trusted), screen }
  }
}

/** An unknown store, with a message that a model can act on. */
interface Unknown {
  readonly kind: 'unknown'
  readonly failure: ToolResult
}

function onlyOf(stores: ReadonlyMap<string, Store>): Store | undefined {
  const [first, ...others] = stores.values()
  return others.length === 0 ? first : undefined
}

function unknown(stores: ReadonlyMap<string, Store>): Unknown {
  const names = [...stores.keys()].toSorted().join(', ')
  return { kind: 'unknown', failure: toolFailure(`arguments/store: must be one of: ${names}`) }
}
