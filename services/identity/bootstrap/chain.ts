import type { Members } from '@plat/kubernetes'
import { member, textOf } from '@plat/kubernetes'
import type { ClusterApi } from '../kubernetes/cluster-api.ts'
import { type BoundPod, livePod } from '../kubernetes/pod.ts'
import { isStop } from '../proof/parts/verdict.ts'
import { controllerOf, isOwner, type KubernetesObject, kinds, type Owner, readObject, watched } from './objects.ts'
import { denied, gone, NotReadyError, unavailable } from './refusals.ts'

/** Name of the pod of a Sandbox when it differs from that of the Sandbox. */
const POD_NAME_ANNOTATION = 'agents.x-k8s.io/pod-name'

/** The session that a live pod serves, and the pod. */
export interface Chain {
  readonly pod: Members
  readonly sandbox: KubernetesObject
  readonly session: KubernetesObject
}

/**
 * Follows a pod to its session: pod, Sandbox, SandboxClaim, AgentSession (docs/spec/broker-api.md, `POST /v1/bootstrap`). Each step up is the
 * controller reference, by UID. Anyone who can create objects can write such a reference, so each owner must name the owned object as well. Throws
 * the contract's refusals.
 */
export async function followPod(api: ClusterApi, bound: BoundPod): Promise<Chain> {
  const { namespace } = bound
  const pod = await livePod(api, bound)
  if (isStop(pod)) throw pod.kind === 'failed' ? denied(pod.reason) : unavailable(pod.reason)

  const podOwner = controllerOf(member(pod, 'metadata'))
  if (!isOwner(podOwner, kinds.sandbox)) throw denied('the pod is of no Sandbox')
  const sandbox = exactly(await readObject(api, kinds.sandbox, namespace, podOwner.name), podOwner)
  if (podNameOf(sandbox) !== bound.pod) throw denied('the Sandbox has another pod')

  const claimRef = claimOf(sandbox)
  const claim = exactly(await readObject(api, kinds.claim, namespace, claimRef.name), claimRef)
  const adopted = textOf(member(claim.status, 'sandbox'), 'name')
  if (adopted === '')
    throw new NotReadyError('not_adopted', 'the claim has not recorded its Sandbox yet', watched(claim))
  if (adopted !== sandbox.name) throw denied('the claim has another Sandbox')

  const sessionRef = controllerOf(claim.metadata)
  if (!isOwner(sessionRef, kinds.session)) throw denied('the claim is of no AgentSession')
  const session = await readObject(api, kinds.session, namespace, sessionRef.name)
  if (session === null) throw gone('the session is deleted')
  return { pod, sandbox, session: exactly(session, sessionRef) }
}

/** Returns the owner that a reference names, checked by kind and UID. */
function exactly(object: KubernetesObject | null, { kind, uid }: Owner): KubernetesObject {
  if (object === null) throw denied(`the ${kind} does not exist`)
  if (object.uid !== uid) throw denied(`the ${kind} is another one of the same name`)
  if (object.deleting) throw gone(`the ${kind} is being deleted`)
  return object
}

function podNameOf({ name, metadata }: KubernetesObject): string {
  return textOf(member(metadata, 'annotations'), POD_NAME_ANNOTATION) || name
}

/** Returns the claim that adopted a Sandbox. Until then its pool owns it, or it has no owner. */
function claimOf(sandbox: KubernetesObject): Owner {
  const owner = controllerOf(sandbox.metadata)
  if (isOwner(owner, kinds.claim)) return owner
  if (owner !== null && !isOwner(owner, kinds.pool)) throw denied('the Sandbox is of no SandboxClaim')
  throw new NotReadyError('not_adopted', 'no claim has adopted the Sandbox yet', watched(sandbox))
}
