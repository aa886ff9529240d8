import { followFile, missingFile } from '@plat/config'
import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import { decodeRendered, MEMORY_DEFAULTS, type MemoryFile, memoryFileSchema } from '@plat/resources/rendered'
import type { Slot, Snapshots } from '../../call/index.ts'

const DAY_MS = 86_400_000

export interface Store {
  readonly namespace: string
  readonly name: string
  readonly scope: 'agent' | 'session' | 'user'
  readonly retentionMs: number
  /** Limit per owner. */
  readonly maxItems: number
  readonly maxItemBytes: number
  /** Empty for none. */
  readonly dlpProfile: string
  readonly taints: readonly string[]
}

export class Stores {
  readonly #byNamespace = new Map<string, Map<string, Store>>()

  constructor(stores: readonly Store[]) {
    for (const store of stores) {
      this.#byNamespace.getOrInsertComputed(store.namespace, () => new Map()).set(store.name, store)
    }
  }

  of(namespace: string): ReadonlyMap<string, Store> {
    return this.#byNamespace.get(namespace) ?? NO_STORES
  }
}

const NO_STORES: ReadonlyMap<string, Store> = new Map()

/** Snapshot slot of the stores of `memoryFile`. */
export const storesSlot: Slot<Stores> = { name: 'memory', initial: new Stores([]) }

/** `<namespace>/<name>`, both valid names of Kubernetes. */
const KEY = /^([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)\/([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)$/

/** Decodes a memoryFile strictly, or returns every problem with its path. */
export function decodeStores(
  bytes: Uint8Array,
): { readonly stores: Stores } | { readonly problems: readonly string[] } {
  const decoded = decodeRendered(memoryFileSchema, bytes, () => [])
  if (!decoded.ok) return { problems: decoded.problems }
  const problems: string[] = []
  const stores: Store[] = []
  for (const [key, spec] of Object.entries(decoded.file.stores)) {
    const [, namespace, name] = KEY.exec(key) ?? []
    if (namespace === undefined || name === undefined) problems.push(`stores[${key}]: must be <namespace>/<name>`)
    else stores.push(storeOf(namespace, name, spec))
  }
  return problems.length > 0 ? { problems } : { stores: new Stores(stores) }
}

function storeOf(namespace: string, name: string, spec: MemoryFile['stores'][string]): Store {
  const { scope, dlpProfile = '', taints = [] } = spec
  const { retentionDays, maxItems, maxItemBytes } = { ...MEMORY_DEFAULTS, ...spec }
  return { namespace, name, scope, retentionMs: retentionDays * DAY_MS, maxItems, maxItemBytes, dlpProfile, taints }
}

export interface StoresWatchOptions {
  readonly config: { readonly memoryFile: string; readonly policyReloadSeconds: number }
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
}

/** Stores of `memoryFile`, reloaded every `policyReloadSeconds`; an invalid file leaves the previous one in force. */
export function watchStores({ config, snapshots, clock, log }: StoresWatchOptions) {
  const path = config.memoryFile
  const refuse = (problems: readonly string[]) =>
    log.error({ path, problems }, 'memoryFile is refused: the stores loaded before stay in use')
  return followFile({
    path,
    everySeconds: config.policyReloadSeconds,
    clock,
    decode: (bytes) => (bytes === null ? missingFile : decodeStores(bytes)),
    publish({ stores }) {
      snapshots.publish(storesSlot, stores)
      log.info({ path }, 'memory stores loaded')
    },
    refuse,
  })
}
