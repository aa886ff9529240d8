import { canonicalJson, isObject } from '@plat/core'
import { type KubernetesApi, type Members, member, textOf } from '@plat/kubernetes'
import { tierOfAgent } from '@plat/resources'
import type { Mirror } from '../kube/mirror.ts'
import type { Objects } from '../kube/objects.ts'
import { OWNER } from '../kube/outputs.ts'
import { EXTENSIONS_API, poolName, poolOf } from './pod/sandbox.ts'

/** The label that says which tier a warm pool is of. */
export const TIER = 'plat.dev/tier'

export interface PoolsParts {
  readonly api: KubernetesApi
  readonly mirror: Mirror
  readonly pools: Objects
}

/** The warm pools of TrustTiers: one in each namespace that has Agents of the tier. */
export class WarmPools {
  readonly #parts: PoolsParts

  constructor(parts: PoolsParts) {
    this.#parts = parts
  }

  /** `key`: name of a TrustTier. One that is gone takes its pools with it. */
  async reconcile(key: string, signal: AbortSignal): Promise<Record<string, never>> {
    const { api, mirror, pools } = this.#parts
    const tier = mirror.find('TrustTier', key)
    if (tier === undefined || !pools.known) return {}
    const agents = tier.spec.warmPool === undefined ? [] : mirror.list('Agent')
    const wanted = new Set(
      agents.filter(({ spec }) => tierOfAgent(spec) === key).map(({ metadata }) => metadata.namespace),
    )
    for (const namespace of wanted) {
      const pool = poolOf(tier, namespace)
      const path = pathOf(namespace, poolName(key))
      const found = pools.get(namespace, poolName(key))
      if (found !== undefined && isLike(found, pool)) continue
      const query = { fieldManager: OWNER, force: 'true' }
      await api.ask({ method: 'PATCH', path, query, contentType: 'application/apply-patch+yaml', body: pool, signal })
    }
    for (const pool of this.#poolsOf(tier.metadata)) {
      const { namespace, name } = member(pool, 'metadata')
      if (wanted.has(String(namespace))) continue
      await api.ask({ method: 'DELETE', path: pathOf(String(namespace), String(name)), body: {}, signal })
    }
    return {}
  }

  /** Warm pods that are ready, by tier; only tiers with warm pools. */
  ready(): ReadonlyMap<string, number> {
    const ready = new Map<string, number>()
    for (const { metadata, spec } of this.#parts.mirror.list('TrustTier')) {
      if (spec.warmPool === undefined) continue
      const counts = this.#poolsOf(metadata).map((pool) => member(pool, 'status').readyReplicas)
      ready.set(
        metadata.name,
        counts.reduce<number>((sum, count) => sum + (typeof count === 'number' ? count : 0), 0),
      )
    }
    return ready
  }

  #poolsOf({ name, uid }: { readonly name: string; readonly uid: string }): readonly Members[] {
    return this.#parts.pools.list().filter((pool) => {
      const { labels, ownerReferences } = member(pool, 'metadata')
      const owners = Array.isArray(ownerReferences) ? ownerReferences.filter(isObject) : []
      return isObject(labels) && labels[TIER] === name && owners.some((owner) => owner.uid === uid)
    })
  }
}

/** Whether the fields that the operator writes are up to date. */
function isLike(found: Members, pool: object): boolean {
  const wanted = member({ pool }, 'pool')
  const spec = member(found, 'spec')
  const declared = {
    replicas: spec.replicas,
    sandboxTemplateRef: { name: textOf(member(spec, 'sandboxTemplateRef'), 'name') },
  }
  return canonicalJson(declared) === canonicalJson(member(wanted, 'spec'))
}

function pathOf(namespace: string, name: string): string {
  return `/apis/${EXTENSIONS_API}/namespaces/${encodeURIComponent(namespace)}/sandboxwarmpools/${encodeURIComponent(name)}`
}
