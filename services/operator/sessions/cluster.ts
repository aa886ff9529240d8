import { canonicalJson, isObject } from '@plat/core'
import { type KubernetesApi, KubernetesApiError, type Members, member, textOf } from '@plat/kubernetes'
import type { AgentSpec, Resource } from '@plat/resources'
import { ReconcileError } from '../controllers/controller.ts'
import type { Objects } from '../kube/objects.ts'
import { OWNER } from '../kube/outputs.ts'
import type { Mode } from './life/admission.ts'
import type { SnapshotRequest } from './life/hindrance.ts'
import type { SandboxView } from './life/phase.ts'
import type { SnapshotView } from './life/workspace.ts'
import { sessionSecretOf } from './pod/environment.ts'
import { type GatewayPods, networkNameOf, networkOf, showsLiveView } from './pod/network.ts'
import { hasWorkspaceClaim, workspaceClaimOf } from './pod/pod.ts'
import {
  claimOf,
  EXTENSIONS_API,
  NETWORK_API,
  SANDBOX_API,
  SNAPSHOT_API,
  snapshotNameOf,
  snapshotOf,
} from './pod/sandbox.ts'
import { hasLiveView } from './pod/sidecars.ts'

type Session = Resource<'AgentSession'>

const FORBIDDEN = 403
const NOT_FOUND = 404
const CONFLICT = 409

/** Where an object is created, and the object. */
type NewObject = readonly [api: string, plural: string, object: object]

/** The objects of other projects in which sessions run, as the cluster has them. */
export interface Foreign {
  readonly sandboxes: Objects
  readonly claims: Objects
  readonly pools: Objects
  readonly snapshots: Objects
  /** NetworkPolicies of sessions. */
  readonly networks: Objects
}

/** The controller of an object that is not ours: its kind and UID. */
function controllerOf(object: Members): { readonly kind: string; readonly uid: string } {
  const { ownerReferences } = member(object, 'metadata')
  const references = Array.isArray(ownerReferences) ? ownerReferences.filter(isObject) : []
  const controller = references.find((reference) => reference.controller === true) ?? {}
  return { kind: textOf(controller, 'kind'), uid: textOf(controller, 'uid') }
}

function uidOf(object: Members): string {
  return textOf(member(object, 'metadata'), 'uid')
}

/** The objects of sessions in the cluster: Sandboxes, claims and Secrets. Objects with another owner UID are never changed. */
export class SessionObjects {
  readonly #api: KubernetesApi
  readonly #sandboxes: Objects
  readonly #claims: Objects
  readonly #snapshots: Objects
  readonly #networks: Objects
  readonly #gateway: GatewayPods

  constructor(api: KubernetesApi, foreign: Omit<Foreign, 'pools'>, gateway: GatewayPods) {
    const { sandboxes, claims, snapshots, networks } = foreign
    this.#api = api
    this.#sandboxes = sandboxes
    this.#claims = claims
    this.#snapshots = snapshots
    this.#networks = networks
    this.#gateway = gateway
  }

  /** The Sandbox of a session, by the way that it came to it; null: there is none yet. */
  sandboxOf(session: Session): Members | null {
    const { namespace, name, uid } = session.metadata
    if (session.status?.mode === 'direct') return ownedOrNull(this.#sandboxes.get(namespace, name), uid)
    const claim = this.claimOf(session)
    if (claim === null) return null
    const adopted = textOf(member(member(claim, 'status'), 'sandbox'), 'name')
    return adopted === '' ? null : ownedOrNull(this.#sandboxes.get(namespace, adopted), uidOf(claim))
  }

  claimOf({ metadata: { namespace, name, uid } }: Session): Members | null {
    return ownedOrNull(this.#claims.get(namespace, name), uid)
  }

  /** The PersistentVolumeClaim of a session's workspace; null: it has no Sandbox that has run, or one without a workspace. */
  workspaceClaimOf(session: Session): string | null {
    const sandbox = session.status?.sandboxRef === undefined ? null : this.sandboxOf(session)
    if (sandbox === null || !hasWorkspaceClaim(sandbox)) return null
    return workspaceClaimOf(textOf(member(sandbox, 'metadata'), 'name'))
  }

  /** The VolumeSnapshot that a session's workspace begins with; null: there is none. */
  snapshotOf({ metadata: { namespace, name, uid } }: Session): SnapshotView | null {
    const snapshot = ownedOrNull(this.#snapshots.get(namespace, snapshotNameOf(name)), uid)
    if (snapshot === null) return null
    const status = member(snapshot, 'status')
    return {
      name: snapshotNameOf(name),
      ready: status.readyToUse === true,
      takenAt: textOf(status, 'creationTime'),
      restoreSize: textOf(status, 'restoreSize'),
      error: textOf(member(status, 'error'), 'message'),
    }
  }

  /** Has the workspace of a session copied, unless it is already. */
  async ensureSnapshot(session: Session, request: SnapshotRequest, signal: AbortSignal): Promise<void> {
    await this.#create(session, [SNAPSHOT_API, 'volumesnapshots', snapshotOf(session, request)], signal)
  }

  /** Deletes the VolumeSnapshot of a session, whose volume has been made from it. */
  async removeSnapshot({ metadata: { namespace, name, uid } }: Session, signal: AbortSignal): Promise<void> {
    const own = ownedOrNull(this.#snapshots.get(namespace, snapshotNameOf(name)), uid)
    if (own === null) return
    await this.#delete(collection(SNAPSHOT_API, namespace, 'volumesnapshots', snapshotNameOf(name)), uidOf(own), signal)
  }

  /** The session that an object belongs to, as `<namespace>/<name>`: both it and its claim have the session's name. */
  sessionKeyOf(object: Members): string | null {
    const { kind } = controllerOf(object)
    const { namespace, ownerReferences } = member(object, 'metadata')
    if (kind !== 'AgentSession' && kind !== 'SandboxClaim') return null
    const references = Array.isArray(ownerReferences) ? ownerReferences.filter(isObject) : []
    const owner = references.find((reference) => reference.controller === true) ?? {}
    return `${String(namespace)}/${textOf(owner, 'name')}`
  }

  /** The SandboxTemplate that a warm pool is made of; null: there is none. */
  async template(namespace: string, name: string, signal: AbortSignal): Promise<Members | null> {
    return this.#find(collection(EXTENSIONS_API, namespace, 'sandboxtemplates', name), signal)
  }

  /** Creates the objects that a session runs in, unless they exist. */
  async ensure(session: Session, mode: Mode, wanted: { sandbox(): object; pool: string }, signal: AbortSignal) {
    const wants: NewObject =
      mode === 'direct'
        ? [SANDBOX_API, 'sandboxes', wanted.sandbox()]
        : [EXTENSIONS_API, 'sandboxclaims', claimOf(session, wanted.pool)]
    await this.#create(session, wants, signal)
  }

  /** Lets only the gateway reach a pod that shows its browser, before it is there. `sandbox`: null while there is none. */
  async ensureNetwork(session: Session, sandbox: Members | null, agent: AgentSpec | null, signal: AbortSignal) {
    const isViewed = sandbox === null ? agent !== null && hasLiveView(agent) : showsLiveView(sandbox)
    if (!isViewed) return
    const { namespace, name, uid } = session.metadata
    const wanted = networkOf(session, this.#gateway)
    const found = ownedOrNull(this.#networks.get(namespace, networkNameOf(name)), uid)
    if (found === null) {
      await this.#create(session, [NETWORK_API, 'networkpolicies', wanted], signal)
      return
    }
    if (canonicalJson(member(found, 'spec')) === canonicalJson(wanted.spec)) return
    await this.#api.ask({
      method: 'PATCH',
      path: collection(NETWORK_API, namespace, 'networkpolicies', networkNameOf(name)),
      query: { fieldManager: OWNER, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      // The UID: only the object that was read is changed.
      body: { ...wanted, metadata: { ...wanted.metadata, uid: uidOf(found) } },
      signal,
    })
  }

  async #create({ metadata }: Session, [api, plural, object]: NewObject, signal: AbortSignal): Promise<void> {
    const { namespace, uid } = metadata
    const name = textOf(member({ ...object }, 'metadata'), 'name')
    try {
      const query = { fieldManager: OWNER }
      await this.#api.ask({ method: 'POST', path: collection(api, namespace, plural), query, body: object, signal })
    } catch (error) {
      if (!(error instanceof KubernetesApiError) || error.status !== CONFLICT) throw error
      const found = await this.#find(collection(api, namespace, plural, name), signal)
      if (found === null || controllerOf(found).uid === uid) return
      throw new ReconcileError(
        'NameTaken',
        `${plural} ${namespace}/${name} is there already, and is not of this session`,
      )
    }
  }

  /** Lets a Sandbox run, or stops its pod and keeps the rest. */
  async setMode(sandbox: Members, operatingMode: 'Running' | 'Suspended', signal: AbortSignal): Promise<void> {
    if ((textOf(member(sandbox, 'spec'), 'operatingMode') || 'Running') === operatingMode) return
    const { namespace, name } = member(sandbox, 'metadata')
    // Updates the version that was read: after a conflict it is retried with the new version.
    await this.#api.ask({
      method: 'PUT',
      path: collection(SANDBOX_API, String(namespace), 'sandboxes', String(name)),
      query: { fieldManager: OWNER },
      body: {
        ...sandbox,
        apiVersion: SANDBOX_API,
        kind: 'Sandbox',
        spec: { ...member(sandbox, 'spec'), operatingMode },
      },
      signal,
    })
  }

  /** Deletes what a session ran in, with its volumes. */
  async remove(session: Session, signal: AbortSignal): Promise<void> {
    await this.removeSnapshot(session, signal)
    const { namespace, name, uid } = session.metadata
    const network = ownedOrNull(this.#networks.get(namespace, networkNameOf(name)), uid)
    const own = ownedOrNull(this.#sandboxes.get(namespace, name), uid)
    if (own !== null) await this.#delete(collection(SANDBOX_API, namespace, 'sandboxes', name), uidOf(own), signal)
    const claim = this.claimOf(session)
    if (claim !== null)
      await this.#delete(collection(EXTENSIONS_API, namespace, 'sandboxclaims', name), uidOf(claim), signal)
    if (network === null) return
    await this.#delete(
      collection(NETWORK_API, namespace, 'networkpolicies', networkNameOf(name)),
      uidOf(network),
      signal,
    )
  }

  /** Reads the Secret of a session's token. Returns null if it does not exist, belongs to another session, or may not be read. */
  async findSecret({ metadata }: Session, signal: AbortSignal): Promise<Members | null> {
    const path = collection('v1', metadata.namespace, 'secrets', sessionSecretOf(metadata.name))
    try {
      return ownedOrNull((await this.#find(path, signal)) ?? undefined, metadata.uid)
    } catch (error) {
      if (error instanceof KubernetesApiError && error.status === FORBIDDEN) return null
      throw error
    }
  }

  /** Writes the Secret of a session's token. */
  async putSecret({ metadata }: Session, secret: object, signal: AbortSignal): Promise<void> {
    await this.#api.ask({
      method: 'PATCH',
      path: collection('v1', metadata.namespace, 'secrets', sessionSecretOf(metadata.name)),
      query: { fieldManager: OWNER, force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body: secret,
      signal,
    })
  }

  async removeSecret({ metadata }: Session, signal: AbortSignal): Promise<void> {
    await this.#delete(collection('v1', metadata.namespace, 'secrets', sessionSecretOf(metadata.name)), null, signal)
  }

  async #find(path: string, signal: AbortSignal): Promise<Members | null> {
    try {
      return (await this.#api.ask({ method: 'GET', path, signal })).body
    } catch (error) {
      if (error instanceof KubernetesApiError && error.status === NOT_FOUND) return null
      throw error
    }
  }

  async #delete(path: string, uid: string | null, signal: AbortSignal): Promise<void> {
    const preconditions = uid === null ? {} : { preconditions: { uid } }
    try {
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', ...preconditions }
      await this.#api.ask({ method: 'DELETE', path, body, signal })
    } catch (error) {
      if (!(error instanceof KubernetesApiError) || error.status !== NOT_FOUND) throw error
    }
  }
}

/** The parts of a Sandbox that determine the phase of its session. */
export function viewOf(sandbox: Members | null): SandboxView | null {
  if (sandbox === null) return null
  const { conditions } = member(sandbox, 'status')
  const holds = (type: string) =>
    (Array.isArray(conditions) ? conditions.filter(isObject) : []).find(
      (condition) => condition.type === type && condition.status === 'True',
    )
  const finished = holds('Finished')
  return {
    name: textOf(member(sandbox, 'metadata'), 'name'),
    uid: uidOf(sandbox),
    ready: holds('Ready') !== undefined,
    finished: finished === undefined ? null : finished.reason === 'PodSucceeded' ? 'Succeeded' : 'Failed',
  }
}

function ownedOrNull(object: Members | undefined, uid: string): Members | null {
  return object !== undefined && controllerOf(object).uid === uid ? object : null
}

/** Path of a collection, or of one object in it. */
function collection(api: string, namespace: string, plural: string, name = ''): string {
  const root = api === 'v1' ? '/api/v1' : `/apis/${api}`
  const path = `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}`
  return name === '' ? path : `${path}/${encodeURIComponent(name)}`
}
