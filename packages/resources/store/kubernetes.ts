import { canonicalJson, isObject } from '@plat/core'
import { type ApiRequest, type KubernetesApi, KubernetesApiError, type Members, member, textOf } from '@plat/kubernetes'
import { problemLine } from '../decode.ts'
import { API_VERSION, type Kind, type Manifest, type Resource, type StatusOf } from '../kinds/kinds.ts'
import { validate, validateStatus, withDefaults } from '../validate.ts'
import {
  collection,
  faultOf,
  keyOf,
  managersOf,
  pathOf,
  problemsOf,
  readObject,
  replacing,
  withoutTools,
} from './kubernetes-objects.ts'
import { sameManifest } from './same.ts'
import type {
  Applied,
  ApplyOptions,
  Conflict,
  Key,
  ListOptions,
  Page,
  RemoveOptions,
  ResourceStore,
  StatusOptions,
  WatchEvent,
} from './store.ts'

/** Page size of lists. */
const PAGE_ITEMS = 250
/** Duration of one watch request in seconds; then it is resumed. */
const WATCH_SECONDS = 290
/** Maximum number of stored problems with invalid objects. */
const MAX_PROBLEMS = 1000

const BAD_REQUEST = 400
const NOT_FOUND = 404
const CONFLICT = 409
const GONE = 410
const INVALID = 422

export interface KubernetesStoreOptions {
  readonly api: KubernetesApi
  /** The only visible namespace; absent: all. Cluster-scoped kinds are always visible. */
  readonly namespace?: string
  /** Manager of status writes in `managedFields`. */
  readonly statusOwner: string
}

export interface KubernetesStore extends ResourceStore {
  /** One line for each invalid object, such as one of an older definition: it is omitted. */
  problems(): readonly string[]
}

/** Creates a store over a cluster. Refusals and failures of the API server are thrown as KubernetesApiError. */
export function createKubernetesStore(options: KubernetesStoreOptions): KubernetesStore {
  return new ClusterObjects(options)
}

class ClusterObjects implements KubernetesStore {
  readonly #options: KubernetesStoreOptions
  /** By path of the object. */
  readonly #problems = new Map<string, string>()

  constructor(options: KubernetesStoreOptions) {
    this.#options = options
  }

  problems(): readonly string[] {
    return [...this.#problems.values()]
  }

  close(): void {}

  async get<K extends Kind>(kind: K, key: Key): Promise<Resource<K> | null> {
    const found = await this.#find(kind, key)
    return found === null ? null : this.#resource(kind, found)
  }

  async list<K extends Kind>(kind: K, { namespace, labels, limit, cursor }: ListOptions): Promise<Page<K>> {
    const path = collection(kind, namespace ?? this.#options.namespace ?? '')
    const selector = Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`)
    const items: Resource<K>[] = []
    let from = cursor ?? ''
    for (;;) {
      const query = {
        limit: String(limit ?? PAGE_ITEMS),
        ...(selector.length > 0 && { labelSelector: selector.join(',') }),
        ...(from !== '' && { continue: from }),
      }
      const { body } = await this.#options.api.ask({ method: 'GET', path, query })
      const metadata = member(body, 'metadata')
      const found = Array.isArray(body.items) ? body.items.filter(isObject) : []
      for (const object of found) {
        const resource = this.#resource(kind, object)
        if (resource !== null) items.push(resource)
      }
      from = textOf(metadata, 'continue')
      const revision = textOf(metadata, 'resourceVersion')
      if (limit !== undefined || from === '') return { items, revision, next: from === '' ? null : from }
    }
  }

  async *watch<K extends Kind>(kind: K, from: string | null, signal: AbortSignal): AsyncGenerator<WatchEvent<K>> {
    let revision = from
    if (revision === null) {
      const page = await this.list(kind, {})
      for (const object of page.items) yield { type: 'ADDED', object, revision: page.revision }
      yield { type: 'BOOKMARK', revision: page.revision }
      revision = page.revision
    }
    while (!signal.aborted) {
      revision = yield* this.#follow(kind, revision, signal)
      if (revision === null) {
        yield { type: 'GONE' }
        return
      }
    }
  }

  /** Follows one watch to its end. Returns where the next one resumes; null when the revision is gone. */
  async *#follow<K extends Kind>(
    kind: K,
    from: string,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<K>, string | null> {
    if (!/^\d+$/.test(from)) return null
    const path = collection(kind, this.#options.namespace ?? '')
    const query = { resourceVersion: from, allowWatchBookmarks: 'true', timeoutSeconds: String(WATCH_SECONDS) }
    let revision = from
    try {
      for await (const lines of this.#options.api.watch(path, query, signal)) {
        for (const { type, object } of lines) {
          if (type === 'ERROR') throw faultOf(object)
          revision = textOf(member(object, 'metadata'), 'resourceVersion')
          if (type !== 'ADDED' && type !== 'MODIFIED' && type !== 'DELETED') continue
          const read = this.#resource(kind, object)
          if (type === 'DELETED') this.#problems.delete(pathOf(kind, keyOf(object)))
          if (read !== null) yield { type, object: read, revision }
          // It may have been valid before: a new list omits it.
          else if (type === 'MODIFIED') return null
        }
        if (signal.aborted) break
        yield { type: 'BOOKMARK', revision }
      }
    } catch (error) {
      if (error instanceof KubernetesApiError && error.status === GONE) return null
      throw error
    }
    return revision
  }

  async apply<K extends Kind>(manifest: Manifest<K>, options: ApplyOptions): Promise<Applied<K>> {
    const { kind, metadata } = manifest
    const problems = validate(kind, manifest)
    if (problems.length > 0) return { kind: 'invalid', problems }
    const filled = withDefaults(kind, manifest)
    const found = await this.#find(kind, metadata)
    const unmet = unmetBy(found, options)
    if (unmet !== null) return { kind: 'conflict', reason: `${pathOf(kind, metadata)} ${unmet}` }
    const held = found === null ? null : this.#resource(kind, found)
    if (held !== null && sameManifest(withoutTools(held), filled)) return { kind: 'applied', object: held }
    const other = found === null ? undefined : managersOf(found).find((manager) => manager !== options.owner)
    if (other !== undefined && options.force !== true) {
      const reason = `${pathOf(kind, metadata)} was written by ${other}: apply with force to take it over`
      return { kind: 'conflict', reason }
    }
    const query = {
      fieldManager: options.owner,
      fieldValidation: 'Strict',
      ...(options.dryRun === true && { dryRun: 'All' }),
    }
    const write: ApiRequest =
      found === null
        ? { method: 'POST', path: collection(kind, metadata.namespace), query, body: manifest }
        : { method: 'PUT', path: pathOf(kind, metadata), query, body: replacing(found, manifest, options.owner) }
    return this.#written(kind, write)
  }

  async applyStatus<K extends Kind>(
    kind: K,
    key: Key,
    status: StatusOf<K>,
    { dryRun, revision }: StatusOptions = {},
  ): Promise<Applied<K> | null> {
    const problems = validateStatus(kind, status)
    if (problems.length > 0) return { kind: 'invalid', problems }
    const held = await this.get(kind, key)
    if (held === null) return null
    if (canonicalJson(held.status ?? {}) === canonicalJson(status)) return { kind: 'applied', object: held }
    // The event is not about another object that has the name by now.
    const metadata = {
      name: key.name,
      uid: held.metadata.uid,
      ...(revision !== undefined && { resourceVersion: revision }),
    }
    try {
      return await this.#written(kind, {
        method: 'PATCH',
        path: `${pathOf(kind, key)}/status`,
        query: {
          fieldManager: this.#options.statusOwner,
          force: 'true',
          fieldValidation: 'Strict',
          ...(dryRun === true && { dryRun: 'All' }),
        },
        contentType: 'application/apply-patch+yaml',
        body: { apiVersion: API_VERSION, kind, metadata, status },
      })
    } catch (error) {
      if (error instanceof KubernetesApiError && error.status === NOT_FOUND) return null
      throw error
    }
  }

  async remove(kind: Kind, key: Key, { uid, revision }: RemoveOptions = {}): Promise<'removed' | 'missing' | Conflict> {
    const preconditions = {
      ...(uid !== undefined && { uid }),
      ...(revision !== undefined && { resourceVersion: revision }),
    }
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions }
    try {
      await this.#options.api.ask({ method: 'DELETE', path: pathOf(kind, key), body })
      return 'removed'
    } catch (error) {
      if (!(error instanceof KubernetesApiError)) throw error
      if (error.status === NOT_FOUND) return 'missing'
      if (error.status === CONFLICT) return { kind: 'conflict', reason: error.message }
      throw error
    }
  }

  async #find(kind: Kind, key: Key): Promise<Members | null> {
    try {
      return (await this.#options.api.ask({ method: 'GET', path: pathOf(kind, key) })).body
    } catch (error) {
      if (error instanceof KubernetesApiError && error.status === NOT_FOUND) return null
      throw error
    }
  }

  /** Sends a write whose refusal may be expected. */
  async #written<K extends Kind>(kind: K, request: ApiRequest): Promise<Applied<K>> {
    try {
      const { body } = await this.#options.api.ask(request)
      const object = this.#resource(kind, body)
      if (object === null) throw new KubernetesApiError(`${request.path}: the answer is not a ${kind}`, 0)
      return { kind: 'applied', object }
    } catch (error) {
      if (!(error instanceof KubernetesApiError)) throw error
      if (error.status === CONFLICT) return { kind: 'conflict', reason: error.message }
      if (error.status === INVALID || error.status === BAD_REQUEST)
        return { kind: 'invalid', problems: problemsOf(error) }
      throw error
    }
  }

  /** Decodes an object of this kind; records a problem and returns null when it is invalid. */
  #resource<K extends Kind>(kind: K, found: Members): Resource<K> | null {
    const path = pathOf(kind, keyOf(found))
    const read = readObject(kind, found)
    if (!Array.isArray(read)) {
      this.#problems.delete(path)
      return read
    }
    const line = `${kind} ${path}: ${read.map(problemLine).join('; ')}`
    if (this.#problems.has(path) || this.#problems.size < MAX_PROBLEMS) this.#problems.set(path, line)
    return null
  }
}

/** Returns why an object does not meet the preconditions of a write; null when it does. */
function unmetBy(found: Members | null, { create, revision }: ApplyOptions): string | null {
  if (create === true && found !== null) return 'is there already'
  const current = found === null ? undefined : textOf(member(found, 'metadata'), 'resourceVersion')
  return revision === undefined || revision === current ? null : 'has changed'
}
