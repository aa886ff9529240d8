import { isObject } from '@plat/core'
import { type KubernetesApi, type Members, member, textOf } from '@plat/kubernetes'

/** Every pod of a Sandbox has it, whatever its value. */
const SANDBOX_LABEL = 'agents.x-k8s.io/sandbox-name-hash'
const SANDBOX_GROUP = 'agents.x-k8s.io'
/** Pods of one page. */
const PAGE = 500
/** Pods in these phases run nothing any more. */
const OVER = new Set(['Succeeded', 'Failed'])

/**
 * Returns the number of nodes that run sandboxes: nodes with a pod that a Sandbox controls and that has not terminated.
 * `namespaces`: the namespaces to count in; empty: all. Throws a `KubernetesApiError`.
 */
export async function countSandboxNodes(
  api: KubernetesApi,
  namespaces: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const nodes = new Set<string>()
  const places = namespaces.length === 0 ? [''] : namespaces.map((name) => `namespaces/${encodeURIComponent(name)}/`)
  for (const place of places) {
    let from = ''
    do {
      const query = { labelSelector: SANDBOX_LABEL, limit: String(PAGE), ...(from !== '' && { continue: from }) }
      const { body } = await api.ask({ method: 'GET', path: `/api/v1/${place}pods`, query, signal })
      const pods: readonly unknown[] = Array.isArray(body.items) ? body.items : []
      for (const pod of pods.filter(isObject)) {
        const node = textOf(member(pod, 'spec'), 'nodeName')
        if (node !== '' && isOfSandbox(pod) && !OVER.has(textOf(member(pod, 'status'), 'phase'))) nodes.add(node)
      }
      from = textOf(member(body, 'metadata'), 'continue')
    } while (from !== '')
  }
  return nodes.size
}

/** Anybody may put a label on a pod; a controller is what the Sandbox's own controller writes. */
function isOfSandbox(pod: Members): boolean {
  const { ownerReferences } = member(pod, 'metadata')
  const owners: readonly unknown[] = Array.isArray(ownerReferences) ? ownerReferences : []
  return owners
    .filter(isObject)
    .some(
      (owner) =>
        owner.controller === true &&
        owner.kind === 'Sandbox' &&
        textOf(owner, 'apiVersion').startsWith(`${SANDBOX_GROUP}/`),
    )
}
