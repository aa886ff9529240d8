import { isObject } from '@plat/core'
import { type Members, member } from '@plat/kubernetes'
import type { Resource } from '@plat/resources'
import { SESSION_LABEL } from './pod.ts'
import { metadataOf, NETWORK_API } from './sandbox.ts'
import { LIVE_VIEW_PORT } from './sidecars.ts'

/** The pods of the gateway. */
export interface GatewayPods {
  /** Their namespace: the operator's own. */
  readonly home: string
  readonly gatewayLabels: Readonly<Record<string, string>>
}

/** Whether the pod of a Sandbox shows its browser, whatever its Agent says by now. */
export function showsLiveView(sandbox: Members): boolean {
  const pod = member(member(member(sandbox, 'spec'), 'podTemplate'), 'spec')
  return listOf(pod, 'initContainers').some((container) =>
    listOf(container, 'ports').some(({ containerPort }) => containerPort === LIVE_VIEW_PORT),
  )
}

function listOf(object: Members, name: string): readonly Members[] {
  const list = object[name]
  return Array.isArray(list) ? list.filter(isObject) : []
}

/** Name of the NetworkPolicy of a session's live view. */
export function networkNameOf(session: string): string {
  return `plat-view-${session}`
}

/** Only the gateway reaches a pod that shows its browser, and nothing of it but the live view, which has no password. */
export function networkOf(session: Resource<'AgentSession'>, { home, gatewayLabels }: GatewayPods) {
  const gateway = {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': home } },
    podSelector: { matchLabels: gatewayLabels },
  }
  return {
    apiVersion: NETWORK_API,
    kind: 'NetworkPolicy',
    metadata: { ...metadataOf(session), name: networkNameOf(session.metadata.name) },
    spec: {
      podSelector: { matchLabels: { [SESSION_LABEL]: session.metadata.name } },
      policyTypes: ['Ingress'],
      ingress: [{ from: [gateway], ports: [{ protocol: 'TCP', port: LIVE_VIEW_PORT }] }],
    },
  }
}
