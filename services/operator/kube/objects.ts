import { Backoff, type Clock, type Ids, isObject, reasonOf } from '@plat/core'
import { type KubernetesApi, KubernetesApiError, type Members, member, retryAfterOf, textOf } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import { pause } from '../controllers/elector.ts'

const PAGE_ITEMS = '250'
/** How long the API server keeps a watch open, in seconds. */
const WATCH_SECONDS = '290'
/** Longest pause before a list is tried again, in milliseconds; it doubles with each further time. */
const RETRY_FIRST_MS = 200
/** Longest pause of all, in milliseconds. */
const RETRY_MAX_MS = 30_000

const NOT_FOUND = 404

export interface ObjectsOptions {
  readonly api: Pick<KubernetesApi, 'ask' | 'watch'>
  /** Of the collections that are followed: one of all namespaces, or one for each. */
  readonly paths: readonly string[]
  /** Follows only objects with these labels, such as `a=b`. Absent: all. */
  readonly labelSelector?: string
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly log: Log
  /** Called with the current, or the last known, state of objects. */
  readonly onChange: (objects: readonly Members[]) => void
  /** Called when the cluster serves the kind and did not before. */
  readonly onServed: () => void
}

/** Objects of a kind that is not ours, as the API server has them; none while the cluster does not know the kind. */
export class Objects {
  readonly #options: ObjectsOptions
  readonly #collections: Collection[]
  readonly #selection: Readonly<Record<string, string>>
  readonly #firstLists = Promise.withResolvers<void>()

  constructor(options: ObjectsOptions) {
    this.#options = options
    const { labelSelector } = options
    this.#selection = labelSelector === undefined ? {} : { labelSelector }
    this.#collections = options.paths.map((path) => ({ path, objects: new Map(), state: 'unknown' }))
  }

  /** Resolves when it is known of every collection what is in it, or that there is none. */
  get whenSynced(): Promise<void> {
    return this.#firstLists.promise
  }

  /** Does the cluster know the kind? */
  get known(): boolean {
    return this.#collections.every(({ state }) => state === 'listed')
  }

  get(namespace: string, name: string): Members | undefined {
    const key = `${namespace}/${name}`
    return this.#collections.find(({ objects }) => objects.has(key))?.objects.get(key)
  }

  list(): readonly Members[] {
    return this.#collections.flatMap(({ objects }) => [...objects.values()])
  }

  /** Follows until `signal` aborts. Never rejects. */
  async follow(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#collections.map((collection) => this.#followOne(collection, signal)))
  }

  async #followOne(collection: Collection, signal: AbortSignal): Promise<void> {
    const { clock, ids, log } = this.#options
    const backoff = new Backoff({ firstMs: RETRY_FIRST_MS, maxMs: RETRY_MAX_MS, ids })
    let failures = 0
    while (!signal.aborted) {
      let retryAfterMs = 0
      try {
        let from = await this.#relist(collection, signal)
        failures = 0
        while (!signal.aborted) {
          from = await this.#watch(collection, from, signal)
          // A server that ends every watch at once must not be queried continuously.
          await pause(clock, backoff.pauseMs(0), signal)
        }
      } catch (error) {
        if (signal.aborted) return
        retryAfterMs = retryAfterOf(error)
        if (error instanceof KubernetesApiError && error.status === NOT_FOUND) {
          if (collection.state !== 'absent') log.info({ path: collection.path }, 'the cluster does not know the kind')
          this.#replace(collection, new Map(), 'absent')
          failures = Number.POSITIVE_INFINITY
        } else log.warn({ path: collection.path, error: reasonOf(error) }, 'a watch failed; everything is listed again')
      }
      await pause(clock, backoff.pauseMs(failures, retryAfterMs), signal)
      failures++
    }
  }

  /** Answers where a watch goes on. */
  async #relist(collection: Collection, signal: AbortSignal): Promise<string> {
    const listed = new Map<string, Members>()
    let next = ''
    for (;;) {
      const query = { ...this.#selection, limit: PAGE_ITEMS, ...(next !== '' && { continue: next }) }
      const { body } = await this.#options.api.ask({ method: 'GET', path: collection.path, query, signal })
      for (const object of Array.isArray(body.items) ? body.items.filter(isObject) : [])
        listed.set(keyOf(object), object)
      const metadata = member(body, 'metadata')
      next = textOf(metadata, 'continue')
      if (next !== '') continue
      this.#replace(collection, listed, 'listed')
      return textOf(metadata, 'resourceVersion')
    }
  }

  #replace(collection: Collection, objects: Map<string, Members>, state: 'listed' | 'absent'): void {
    const before = collection.objects
    const isServed = state === 'listed' && collection.state === 'absent'
    collection.objects = objects
    collection.state = state
    if (isServed) this.#options.onServed()
    if (this.#collections.every((each) => each.state !== 'unknown')) this.#firstLists.resolve()
    const gone = [...before].flatMap(([key, object]) => (objects.has(key) ? [] : [object]))
    const changed = [...objects].flatMap(([key, object]) =>
      versionOf(before.get(key)) === versionOf(object) ? [] : [object],
    )
    if (gone.length + changed.length > 0) this.#options.onChange([...gone, ...changed])
  }

  /** One watch, to its end; throws where everything is to be listed again. */
  async #watch(collection: Collection, from: string, signal: AbortSignal): Promise<string> {
    const query = {
      ...this.#selection,
      resourceVersion: from,
      allowWatchBookmarks: 'true',
      timeoutSeconds: WATCH_SECONDS,
    }
    let revision = from
    for await (const lines of this.#options.api.watch(collection.path, query, signal)) {
      const changed: Members[] = []
      for (const { type, object } of lines) {
        if (type === 'ERROR') throw new Error(textOf(object, 'message') || 'the API server ends the watch')
        revision = textOf(member(object, 'metadata'), 'resourceVersion')
        if (type !== 'ADDED' && type !== 'MODIFIED' && type !== 'DELETED') continue
        if (type === 'DELETED') collection.objects.delete(keyOf(object))
        else collection.objects.set(keyOf(object), object)
        changed.push(object)
      }
      if (changed.length > 0) this.#options.onChange(changed)
    }
    return revision
  }
}

interface Collection {
  readonly path: string
  objects: Map<string, Members>
  state: 'unknown' | 'listed' | 'absent'
}

function keyOf(object: Members): string {
  const metadata = member(object, 'metadata')
  return `${textOf(metadata, 'namespace')}/${textOf(metadata, 'name')}`
}

function versionOf(object: Members | undefined): string {
  return object === undefined ? '' : textOf(member(object, 'metadata'), 'resourceVersion')
}
