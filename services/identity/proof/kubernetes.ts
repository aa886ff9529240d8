import { hash } from 'node:crypto'
import { glob } from '@plat/core'
import type { Jws } from '@plat/tokens'
import { type ApiParts, type ApiSettings, ClusterApi } from '../kubernetes/cluster-api.ts'
import { type BoundPod, livePod, reviewToken, substrateOf } from '../kubernetes/pod.ts'
import type { Proof, ProofCheck, ProofContext, ProofVerdict } from './check.ts'
import { readAssertion } from './jwt/assertion.ts'
import type { FirstUse } from './parts/first-use.ts'
import { established, failed, isStop } from './parts/verdict.ts'

/** How long the first use of a token without `exp` is remembered, in milliseconds; the API server issues none such. */
const REMEMBER_MS = 24 * 60 * 60 * 1000

export interface KubernetesSettings extends ApiSettings {
  readonly audience: string
  /** Patterns `<namespace>/<service account>` that may prove. */
  readonly serviceAccounts: readonly string[]
  /** Isolation by name of the runtime class. */
  readonly isolation: ReadonlyMap<string, string>
}

export interface KubernetesParts extends ApiParts {
  readonly firstUse: FirstUse
}

/** Proof by a projected service-account token that is bound to a pod: TokenReview, then the pod read live. */
export function kubernetesCheck(settings: KubernetesSettings, parts: KubernetesParts): ProofCheck {
  const check = new KubernetesCheck(settings, parts)
  return { name: 'kubernetes', nonce: 'none', verify: (proof, context) => check.verify(proof, context) }
}

class KubernetesCheck {
  readonly #settings: KubernetesSettings
  readonly #parts: KubernetesParts
  readonly #api: ClusterApi
  readonly #accounts: readonly ((name: string) => boolean)[]

  constructor(settings: KubernetesSettings, parts: KubernetesParts) {
    this.#settings = settings
    this.#parts = parts
    this.#api = new ClusterApi(settings, parts)
    this.#accounts = settings.serviceAccounts.map(glob)
  }

  async verify({ token, sandbox }: Proof, context: ProofContext): Promise<ProofVerdict> {
    // Read strictly first, so that one credential has one text and its first use can be remembered.
    const jws = readAssertion(token)
    if (isStop(jws)) return jws
    const bound = await reviewToken(this.#api, token ?? '', this.#settings.audience)
    if (isStop(bound)) return bound
    const fault = this.#fault(bound, sandbox, context)
    if (fault !== null) return fault
    const pod = await livePod(this.#api, bound)
    if (isStop(pod)) return pod
    const used = await this.#parts.firstUse.claim(
      `kubernetes ${hash('sha256', jws.input, 'base64')}`,
      context,
      this.#end(jws),
    )
    return used ?? established(substrateOf(bound, pod, this.#settings.isolation))
  }

  #fault({ namespace, serviceAccount, pod, podUid }: BoundPod, sandbox: string | null, context: ProofContext) {
    if (namespace !== context.namespace) return failed('the pod is of another namespace than the session')
    if (!this.#accounts.some((matches) => matches(`${namespace}/${serviceAccount}`))) {
      return failed('the service account may not prove')
    }
    if (sandbox !== null && sandbox !== pod && sandbox !== podUid) return failed('the pod is another than "sandbox"')
    return null
  }

  #end({ payload }: Jws): number {
    const { exp } = payload
    return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1000 : this.#parts.clock.now() + REMEMBER_MS
  }
}
