import { isObject } from '@plat/core'
import { type Members, member } from '@plat/kubernetes'
import type { ProofFailure, Substrate, Unreachable } from '../proof/check.ts'
import { failed, isStop, unreachable } from '../proof/parts/verdict.ts'
import type { ClusterApi } from './cluster-api.ts'

/** Identity in a TokenReview: a service account, and the pod that its token is bound to. */
export interface BoundPod {
  readonly namespace: string
  readonly serviceAccount: string
  readonly pod: string
  readonly podUid: string
}

/** The pod of a projected token that was made for `audience`, by a TokenReview. */
export async function reviewToken(
  api: ClusterApi,
  token: string,
  audience: string,
): Promise<BoundPod | ProofFailure | Unreachable> {
  const answer = await api.ask({
    method: 'POST',
    path: '/apis/authentication.k8s.io/v1/tokenreviews',
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, audiences: [audience] },
    },
  })
  if (isStop(answer)) return answer
  if (answer.status !== 201 && answer.status !== 200) {
    return unreachable(`the API server answers a TokenReview with status ${answer.status}`)
  }
  const status = member(answer.body, 'status')
  const audiences = status.audiences
  if (status.authenticated !== true || ('error' in status && status.error !== '')) {
    return failed('the API server does not authenticate the token')
  }
  // A server without support for audiences returns none: then the token may be one for the API server itself.
  if (!Array.isArray(audiences) || !audiences.includes(audience)) return failed('the token is for another audience')
  return boundPodOf(member(status, 'user'))
}

const USERNAME = /^system:serviceaccount:([^:/]+):([^:/]+)$/
const EXTRA = 'authentication.kubernetes.io/'

function boundPodOf(user: Members): BoundPod | ProofFailure {
  const [, namespace, serviceAccount] = USERNAME.exec(String(user.username)) ?? []
  if (namespace === undefined || serviceAccount === undefined) return failed('the token is of no service account')
  const extra = member(user, 'extra')
  const pod = onlyText(extra[`${EXTRA}pod-name`])
  const podUid = onlyText(extra[`${EXTRA}pod-uid`])
  if (pod === null || podUid === null) return failed('the token is bound to no pod')
  return { namespace, serviceAccount, pod, podUid }
}

function onlyText(value: unknown): string | null {
  const [text]: readonly unknown[] = Array.isArray(value) && value.length === 1 ? value : []
  return typeof text === 'string' && text !== '' ? text : null
}

/** One pod of one UID. `deleting`: its containers may still run. */
export type PodState = 'live' | 'deleting' | 'ended' | 'replaced' | 'gone'

type PodRef = Pick<BoundPod, 'namespace' | 'pod' | 'podUid'>

/** A deleted pod's token stays authenticated for some seconds, and its name may be taken by another pod: the UID decides. */
export async function readPod(
  api: ClusterApi,
  { namespace, pod, podUid }: PodRef,
): Promise<{ readonly state: PodState; readonly pod: Members } | Unreachable> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}`
  const answer = await api.ask({ method: 'GET', path })
  if (isStop(answer)) return answer
  if (answer.status === 404) return { state: 'gone', pod: {} }
  if (answer.status !== 200) return unreachable(`the API server answers for the pod with status ${answer.status}`)
  return { state: stateOf(answer.body, podUid), pod: answer.body }
}

function stateOf(pod: Members, uid: string): PodState {
  const metadata = member(pod, 'metadata')
  if (metadata.uid !== uid) return 'replaced'
  const { phase } = member(pod, 'status')
  if (phase === 'Succeeded' || phase === 'Failed') return 'ended'
  return metadata.deletionTimestamp === undefined ? 'live' : 'deleting'
}

const WHY_NOT_LIVE: Readonly<Record<Exclude<PodState, 'live'>, string>> = {
  deleting: 'the pod is being deleted',
  ended: 'the pod has ended',
  replaced: 'the pod was replaced by another one',
  gone: 'the pod is gone',
}

/** The pod, while it is live. */
export async function livePod(api: ClusterApi, ref: PodRef): Promise<Members | ProofFailure | Unreachable> {
  const read = await readPod(api, ref)
  if (isStop(read)) return read
  return read.state === 'live' ? read.pod : failed(WHY_NOT_LIVE[read.state])
}

/** Returns what a TokenReview and the live pod establish. `isolation`: isolation by runtime class. */
export function substrateOf(bound: BoundPod, pod: Members, isolation: ReadonlyMap<string, string>): Substrate {
  return {
    check: 'kubernetes',
    attestation: 'token-review',
    platform: 'kubernetes',
    sandbox: bound.podUid,
    workload: `system:serviceaccount:${bound.namespace}:${bound.serviceAccount}`,
    ...podFacts(pod, isolation),
  }
}

/** Returns facts of the API server about the pod: the isolation of its runtime class, the image of an only container. */
function podFacts(pod: Members, isolations: ReadonlyMap<string, string>): Pick<Substrate, 'isolation' | 'digest'> {
  const { runtimeClassName } = member(pod, 'spec')
  const isolation = typeof runtimeClassName === 'string' ? isolations.get(runtimeClassName) : undefined
  const { containerStatuses } = member(pod, 'status')
  const [container, another]: readonly unknown[] = Array.isArray(containerStatuses) ? containerStatuses : []
  const image = another === undefined && isObject(container) ? container.imageID : undefined
  const digest = typeof image === 'string' ? /sha256:[0-9a-f]{64}$/.exec(image)?.[0] : undefined
  return { ...(isolation !== undefined && { isolation }), ...(digest !== undefined && { digest }) }
}
