import { Backoff, type Clock, type Ids, reasonOf } from '@plat/core'
import { retryAfterOf } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import { isClusterKind, type Kind, type Resource, type ResourceStore } from '@plat/resources'
import { pause } from '../controllers/elector.ts'
import { keyOf } from '../render/declared.ts'

/** The kinds that are followed. */
export const FOLLOWED = [
  'Agent',
  'MCPServer',
  'ToolPolicy',
  'BudgetPolicy',
  'MemoryStore',
  'SovereigntyPolicy',
  'TrustTier',
  'AgentSession',
  'AgentRevocation',
] as const

export type Followed = (typeof FOLLOWED)[number]

/** Longest pause after a watch has ended or failed, in milliseconds; it doubles with each further time. */
const RETRY_FIRST_MS = 200
/** Longest pause of all, in milliseconds. */
const RETRY_MAX_MS = 30_000

export interface MirrorOptions {
  /** One for all namespaces, or one for each that is looked at. */
  readonly stores: readonly ResourceStore[]
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly log: Log
  /** Called with `<namespace>/<name>` of changed objects; an object that is no longer in the mirror was deleted. */
  readonly onChange: (kind: Followed, keys: readonly string[]) => void
}

/** A copy of the objects of our kinds: lists once, watches, and lists again when a watch cannot continue. */
export class Mirror {
  readonly #options: MirrorOptions
  readonly #parts: readonly Part[]
  readonly #firstLists = Promise.withResolvers<void>()

  constructor(options: MirrorOptions) {
    this.#options = options
    this.#parts = FOLLOWED.flatMap((kind) =>
      options.stores
        // Every store sees all objects of cluster scope.
        .filter((_, index) => index === 0 || !isClusterKind(kind))
        .map((store) => ({ kind, store, objects: new Map<string, Resource>(), synced: false })),
    )
  }

  /** Has everything been listed once? */
  get synced(): boolean {
    return this.#parts.every(({ synced }) => synced)
  }

  /** Resolves when everything has been listed once. Objects that are not known yet must not be treated as missing. */
  get whenSynced(): Promise<void> {
    return this.#firstLists.promise
  }

  list<K extends Kind>(kind: K): readonly Resource<K>[] {
    return this.#parts.flatMap(({ objects }) => [...objects.values()].filter((object) => isOf(kind, object)))
  }

  /** One object by `<namespace>/<name>`, or by its name where the kind has no namespaces. */
  find<K extends Kind>(kind: K, key: string): Resource<K> | undefined {
    const object = this.get(kind, key)
    return object !== undefined && isOf(kind, object) ? object : undefined
  }

  get(kind: Kind, key: string): Resource | undefined {
    return this.#parts.find((part) => part.kind === kind && part.objects.has(key))?.objects.get(key)
  }

  /** Follows until `signal` aborts. Never rejects. */
  async follow(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#parts.map((part) => this.#followPart(part, signal)))
  }

  async #followPart(part: Part, signal: AbortSignal): Promise<void> {
    const { clock, ids, log } = this.#options
    const backoff = new Backoff({ firstMs: RETRY_FIRST_MS, maxMs: RETRY_MAX_MS, ids })
    let failures = 0
    let revision: string | null = null
    const progress = (at: string) => {
      revision = at
      failures = 0
    }
    while (!signal.aborted) {
      let retryAfterMs = 0
      try {
        if (await this.#watch(part, revision, progress, signal)) revision = null
      } catch (error) {
        retryAfterMs = retryAfterOf(error)
        if (!signal.aborted) log.warn({ kind: part.kind, error: reasonOf(error) }, 'a watch failed; it is opened again')
      }
      await pause(clock, backoff.pauseMs(failures, retryAfterMs), signal)
      failures++
    }
  }

  /** One watch to its end. True: its revision is gone, and everything is to be listed again. */
  async #watch(
    part: Part,
    from: string | null,
    progress: (revision: string) => void,
    signal: AbortSignal,
  ): Promise<boolean> {
    /** Grows while everything is listed; then it replaces what was. */
    let listed: Map<string, Resource> | null = from === null ? new Map() : null
    let changed = new Set<string>()
    for await (const event of part.store.watch(part.kind, from, signal)) {
      if (event.type === 'GONE') return true
      if (event.type !== 'BOOKMARK') {
        const key = keyOf(event.object)
        const objects = listed ?? part.objects
        if (event.type === 'DELETED') objects.delete(key)
        else objects.set(key, event.object)
        changed.add(key)
        continue
      }
      if (listed !== null) changed = this.#replace(part, listed)
      listed = null
      part.synced = true
      if (this.synced) this.#firstLists.resolve()
      progress(event.revision)
      if (changed.size > 0) this.#options.onChange(part.kind, [...changed])
      changed = new Set()
    }
    return false
  }

  /** Answers the keys of what is not as it was. */
  #replace(part: Part, listed: Map<string, Resource>): Set<string> {
    const before = part.objects
    part.objects = listed
    return new Set(
      [...before.keys(), ...listed.keys()].filter(
        (key) => before.get(key)?.metadata.resourceVersion !== listed.get(key)?.metadata.resourceVersion,
      ),
    )
  }
}

/** One kind in one store. */
interface Part {
  readonly kind: Followed
  readonly store: ResourceStore
  objects: Map<string, Resource>
  synced: boolean
}

function isOf<K extends Kind>(kind: K, object: Resource): object is Resource<K> {
  return object.kind === kind
}
