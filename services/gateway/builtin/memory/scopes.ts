import { type Caller, type Denial, deny, type ToolResult, toolFailure } from '../../call/index.ts'
import { type Owner, ownerOf, personOf, type TrustedIssuers } from './owner.ts'
import { type Store, storesSlot } from './stores.ts'

/** Takes out of JSON what must not be kept, or not be told. */
export interface Screen {
  taken(json: Uint8Array, where?: { readonly fixed: readonly (readonly string[])[] }): Uint8Array | Denial
  given(json: Uint8Array, where?: { readonly left: readonly string[] }): Uint8Array | Denial
}

export interface PlacesParts {
  readonly trusted: TrustedIssuers
  /** A DLP profile by its name; null: there is none of this name. */
  readonly screens: (profile: string) => Screen | null
}

/** What a call may use of a store. */
export interface MemoryScope {
  readonly store: Store
  readonly owner: Owner
  /** For whom it writes; null: for nobody. */
  readonly person: string | null
  /** Null: the store names no profile. */
  readonly screen: Screen | null
}

/** Leads each caller to its own memory, and to nobody else's. */
export class MemoryScopes {
  readonly #parts: PlacesParts

  constructor(parts: PlacesParts) {
    this.#parts = parts
  }

  /** Where the caller's namespace has no store at all, there are no tools. */
  isEmpty({ identity, snapshot }: Caller): boolean {
    return snapshot.get(storesSlot).of(identity.namespace).size === 0
  }

  /** Why the caller must not use a store; null: it may, or there is no such store, which the tool says. */
  denial(name: string | undefined, caller: Caller): Denial | null {
    const place = this.find(name, caller)
    return place.kind === 'denial' ? place : null
  }

  /** A store of the caller's own namespace: the one that is named, or the only one. */
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
        `the store ${store.name} names the DLP profile ${store.dlpProfile}, which dlpProfiles of this gateway does not hold`,
      )
    }
    return { kind: 'place', store, owner, person: personOf(identity, this.#parts.trusted), screen }
  }
}

/** There is no such store, in words that a model can act on. */
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
