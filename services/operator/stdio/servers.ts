import { isObject } from '@plat/core'
import { type KubernetesApi, KubernetesApiError, type Members, member, textOf } from '@plat/kubernetes'
import type { Resource } from '@plat/resources'
import { Controller, type ControllerParts, ReconcileError } from '../controllers/controller.ts'
import type { Objects } from '../kube/objects.ts'
import { OWNER } from '../kube/outputs.ts'
import { keyOf } from '../render/declared.ts'
import type { Finding } from '../status/conditions.ts'
import type { ClusterObject, StdioKind } from './objects.ts'
import { stdioNameOf } from './place.ts'
import type { Workload } from './workloads.ts'

/** How often everything is applied again, in milliseconds, to undo changes by others that are not watched. */
const WRITE_AGAIN_MS = 600_000

const NOT_FOUND = 404
const CONFLICT = 409

/** Paths of the collections of each kind. */
const COLLECTIONS = {
  ServiceAccount: '/api/v1|serviceaccounts',
  Secret: '/api/v1|secrets',
  NetworkPolicy: '/apis/networking.k8s.io/v1|networkpolicies',
  Service: '/api/v1|services',
  Deployment: '/apis/apps/v1|deployments',
} as const satisfies Record<StdioKind, string>

/** Kinds that are watched. The operator may not list Secrets. */
export type WatchedKind = 'Deployment' | 'Service' | 'NetworkPolicy'

export type StdioWatches = Readonly<Record<WatchedKind, Objects>>

/** Returns the path of a kind in all namespaces, or in one. */
export function stdioCollection(kind: StdioKind, namespace = ''): string {
  const [root, plural] = COLLECTIONS[kind].split('|')
  return namespace === '' ? `${root}/${plural}` : `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}`
}

function pathOf(kind: StdioKind, { namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${stdioCollection(kind, namespace)}/${encodeURIComponent(name)}`
}

export interface StdioServersParts extends Omit<ControllerParts, 'name' | 'reconcile' | 'workers'> {
  readonly api: Pick<KubernetesApi, 'ask'>
  readonly watches: StdioWatches
  /** Called with `<namespace>/<name>` when the status of a server may have changed. */
  readonly onChange: (key: string) => void
}

/** An object as it was last applied. */
interface Applied {
  readonly digest: string
  /** Generation of the object, or its version if it has none. */
  readonly version: string
}

/**
 * Runs stdio servers in Deployments: applies their objects, repairs changes by others, and deletes what belongs to no server any more. Objects with
 * another owner are never changed.
 */
export class StdioServers {
  readonly #parts: StdioServersParts
  readonly #controller: Controller
  /** By `<namespace>/<name>`; null: nothing is changed. */
  #wanted: ReadonlyMap<string, Workload | null> = new Map()
  /** Whether it is known what is wanted. */
  #isReady = false
  /** By path. */
  readonly #applied = new Map<string, Applied>()
  /** Monotonic milliseconds since when objects are applied only if they differ, by `<namespace>/<name>`. */
  readonly #writtenAt = new Map<string, number>()
  /** Why a server could not be applied, by `<namespace>/<name>`. */
  readonly #failures = new Map<string, string>()

  constructor(parts: StdioServersParts) {
    this.#parts = parts
    this.#controller = new Controller({
      ...parts,
      name: 'stdioserver',
      reconcile: (key, signal) => this.#reconcile(key, signal),
      workers: 4,
    })
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#controller.run(signal)
  }

  /** Called after each rendering with all servers that run here. */
  rendered(wanted: ReadonlyMap<string, Workload | null>): void {
    const before = this.#wanted
    this.#wanted = wanted
    for (const [key, workload] of wanted)
      if (workload !== null && workload.digest !== before.get(key)?.digest) this.#controller.queue.add(key)
    for (const key of before.keys()) if (!wanted.has(key)) this.#controller.queue.add(key)
    if (!this.#isReady) for (const key of this.#observed()) this.#controller.queue.add(key)
    this.#isReady = true
  }

  /** Objects that this class watches have changed. */
  changed(objects: readonly Members[]): void {
    for (const object of objects) {
      const key = ownerKeyOf(object)
      if (key === null) continue
      this.#controller.queue.add(key)
      this.#parts.onChange(key)
    }
  }

  /** The condition `Running` of a server; null: it does not run here. */
  running(server: Resource<'MCPServer'>): Finding | null {
    const type = 'Running'
    if (!this.#wanted.has(keyOf(server))) return null
    const failure = this.#failures.get(keyOf(server))
    if (failure !== undefined) return { type, status: 'False', reason: 'NotApplied', message: failure }
    const { namespace, uid } = server.metadata
    const name = stdioNameOf(server)
    const deployment = this.#parts.watches.Deployment.get(namespace, name)
    if (deployment === undefined || controllerOf(deployment).uid !== uid)
      return { type, status: 'False', reason: 'NotCreated', message: `Deployment ${name} does not exist yet` }
    if (conditionOf(deployment, 'Available').status === 'True')
      return { type, status: 'True', reason: 'Available', message: '' }
    const progress = conditionOf(deployment, 'Progressing')
    const why = progress.message === '' ? '' : `: ${progress.message}`
    const message = `no pod of Deployment ${name} is ready${why}; kubectl -n ${namespace} describe pod -l plat.dev/stdio-server=${name}`
    return { type, status: 'False', reason: progress.status === 'False' ? 'Failed' : 'Starting', message }
  }

  /** Servers that watched objects belong to. */
  #observed(): ReadonlySet<string> {
    const objects = Object.values(this.#parts.watches).flatMap((watch) => watch.list())
    return new Set(objects.map(ownerKeyOf).filter((key) => key !== null))
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<{ readonly requeueAfterMs?: number }> {
    if (!this.#isReady) return {}
    const workload = this.#wanted.get(key)
    // Without a value of a Secret, what runs is left alone.
    if (workload === null) return {}
    if (workload === undefined) {
      await this.#remove(key, signal)
      return {}
    }
    this.#forgetOld(key, workload)
    try {
      for (const object of workload.objects) await this.#apply(workload, object, signal)
      this.#fails(key, null)
    } catch (error) {
      if (!signal.aborted) this.#fails(key, error instanceof Error ? error.message : String(error))
      throw error
    }
    return { requeueAfterMs: WRITE_AGAIN_MS }
  }

  #forgetOld(key: string, { objects }: Workload): void {
    const now = this.#parts.clock.monotonic()
    if (now - (this.#writtenAt.get(key) ?? now) >= WRITE_AGAIN_MS) {
      for (const { kind, metadata } of objects) this.#applied.delete(pathOf(kind, metadata))
      this.#writtenAt.delete(key)
    }
    if (!this.#writtenAt.has(key)) this.#writtenAt.set(key, now)
  }

  #fails(key: string, why: string | null): void {
    if ((this.#failures.get(key) ?? null) === why) return
    if (why === null) this.#failures.delete(key)
    else this.#failures.set(key, why)
    this.#parts.onChange(key)
  }

  async #apply({ server, digest }: Workload, object: ClusterObject, signal: AbortSignal): Promise<void> {
    const { namespace, name } = object.metadata
    const path = pathOf(object.kind, object.metadata)
    if (this.#isInForce(object, path, digest)) return
    const found = await this.#find(path, signal)
    if (found !== null && controllerOf(found).uid !== server.metadata.uid)
      throw new ReconcileError(
        'NameTaken',
        `${object.kind} ${namespace}/${name} exists and does not belong to this MCPServer`,
      )
    const { body } = await this.#parts.api.ask({
      method: 'PATCH',
      path,
      query: { fieldManager: OWNER, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body: object,
      signal,
    })
    this.#applied.set(path, { digest, version: versionOf(body) })
    if (found === null || versionOf(found) !== versionOf(body))
      this.#parts.log.info({ kind: object.kind, object: `${namespace}/${name}` }, 'applied for a stdio server')
  }

  /** Whether an object is as it was last applied; of kinds that are not watched this is assumed. */
  #isInForce({ kind, metadata: { namespace, name } }: ClusterObject, path: string, digest: string): boolean {
    const applied = this.#applied.get(path)
    if (applied?.digest !== digest) return false
    if (kind === 'Secret' || kind === 'ServiceAccount') return true
    const seen = this.#parts.watches[kind].get(namespace, name)
    return seen !== undefined && versionOf(seen) === applied.version
  }

  /** Deletes the objects of a server that is gone, or runs elsewhere now. */
  async #remove(key: string, signal: AbortSignal): Promise<void> {
    const [namespace = '', name = ''] = key.split('/')
    const names = new Set([...this.#namesOf(key), stdioNameOf({ metadata: { namespace, name } })])
    for (const object of names)
      for (const kind of REMOVAL) {
        const path = pathOf(kind, { namespace, name: object })
        const found = await this.#find(path, signal)
        if (found !== null && ownerKeyOf(found) === key)
          await this.#delete(path, textOf(member(found, 'metadata'), 'uid'), signal)
        this.#applied.delete(path)
      }
    this.#failures.delete(key)
    this.#writtenAt.delete(key)
  }

  #namesOf(key: string): readonly string[] {
    const objects = Object.values(this.#parts.watches).flatMap((watch) => watch.list())
    return objects
      .filter((object) => ownerKeyOf(object) === key)
      .map((object) => textOf(member(object, 'metadata'), 'name'))
  }

  async #find(path: string, signal: AbortSignal): Promise<Members | null> {
    try {
      return (await this.#parts.api.ask({ method: 'GET', path, signal })).body
    } catch (error) {
      if (error instanceof KubernetesApiError && error.status === NOT_FOUND) return null
      throw error
    }
  }

  async #delete(path: string, uid: string, signal: AbortSignal): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', preconditions: { uid } }
    try {
      await this.#parts.api.ask({ method: 'DELETE', path, body, signal })
    } catch (error) {
      // Another object has its name by now, or it is gone.
      if (!(error instanceof KubernetesApiError) || (error.status !== NOT_FOUND && error.status !== CONFLICT))
        throw error
    }
  }
}

/** Processes end before what they use is removed. */
const REMOVAL: readonly StdioKind[] = ['Deployment', 'Service', 'NetworkPolicy', 'Secret', 'ServiceAccount']

function controllerOf(object: Members): { readonly kind: string; readonly name: string; readonly uid: string } {
  const { ownerReferences } = member(object, 'metadata')
  const references = Array.isArray(ownerReferences) ? ownerReferences.filter(isObject) : []
  const controller = references.find((reference) => reference.controller === true) ?? {}
  return { kind: textOf(controller, 'kind'), name: textOf(controller, 'name'), uid: textOf(controller, 'uid') }
}

/** `<namespace>/<name>` of the MCPServer that an object belongs to, or null. */
function ownerKeyOf(object: Members): string | null {
  const { kind, name } = controllerOf(object)
  return kind === 'MCPServer' ? `${textOf(member(object, 'metadata'), 'namespace')}/${name}` : null
}

/** Changes with what is declared of an object, and not with its status. */
function versionOf(object: Members): string {
  const { uid, generation, resourceVersion } = member(object, 'metadata')
  return `${uid} ${generation ?? resourceVersion}`
}

function conditionOf(object: Members, type: string): { readonly status: string; readonly message: string } {
  const { conditions } = member(object, 'status')
  const found = (Array.isArray(conditions) ? conditions.filter(isObject) : []).find((one) => one.type === type) ?? {}
  return { status: textOf(found, 'status'), message: textOf(found, 'message') }
}
