import { OAuthError } from '@plat/http/endpoints'
import { member, textOf } from '@plat/kubernetes'
import type { ClusterApi } from '../kubernetes/cluster-api.ts'
import { type BoundPod, readPod } from '../kubernetes/pod.ts'
import { isStop } from '../proof/parts/verdict.ts'
import type { KubernetesObject } from './objects.ts'
import { gone, unavailable } from './refusals.ts'

/** Issued token, as recorded on the session. */
export interface IssuedRecord {
  readonly spiffeId: string
  /** Absent for attested sessions. */
  readonly jti?: string
}

/**
 * Binds the session to its first pod (docs/spec/broker-api.md, "States and transitions"). The record is `status.podRef` of the AgentSession, written
 * with the resourceVersion that was checked, so that of two pods, and of two replicas of the broker, exactly one wins. Another pod can take over
 * only when the bound one is gone. Returns false when the session was modified meanwhile, and nothing was bound.
 */
export async function bindPod(
  api: ClusterApi,
  session: KubernetesObject,
  bound: BoundPod,
  issued: IssuedRecord,
): Promise<boolean> {
  await refuseWhileHeld(api, session, bound)
  const answer = await api.ask({
    method: 'PATCH',
    contentType: 'application/merge-patch+json',
    path: `${session.path}/${encodeURIComponent(session.name)}/status`,
    body: {
      metadata: { uid: session.uid, resourceVersion: session.resourceVersion },
      status: { podRef: { name: bound.pod, uid: bound.podUid }, ...issued },
    },
  })
  if (isStop(answer)) throw unavailable(answer.reason)
  if (answer.status === 409) return false
  if (answer.status === 404) throw gone('the session is deleted')
  if (answer.status === 200) return true
  throw unavailable(`the API server answers for the status of the session with ${answer.status}`)
}

/** A pod that is being deleted still runs, with the session's token: it holds the session until it is gone. */
async function refuseWhileHeld(api: ClusterApi, session: KubernetesObject, bound: BoundPod): Promise<void> {
  const holder = member(session.status, 'podRef')
  const [pod, podUid] = [textOf(holder, 'name'), textOf(holder, 'uid')]
  if (podUid === '' || podUid === bound.podUid) return
  const read = await readPod(api, { namespace: bound.namespace, pod, podUid })
  if (isStop(read)) throw unavailable(read.reason)
  if (read.state === 'live' || read.state === 'deleting') {
    throw new OAuthError(409, 'already_bootstrapped', 'another pod serves the session')
  }
}
