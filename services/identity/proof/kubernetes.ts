import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type Clock, glob, parseStrict } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import { isObject, type Jws } from '@plat/tokens'
import type { Proof, ProofCheck, ProofContext, ProofFailure, ProofVerdict, Unreachable } from './check.ts'
import { readAssertion } from './jwt/assertion.ts'
import type { FirstUse } from './parts/first-use.ts'
import { established, failed, isStop, unreachable } from './parts/verdict.ts'

/** Deadline of one request to the API server, in milliseconds. */
const API_TIMEOUT_MS = 5_000
/** Largest answer of the API server, in bytes. */
const MAX_ANSWER_BYTES = 1024 * 1024
/** How long the first use of a token without `exp` is remembered, in milliseconds; the API server issues none such. */
const REMEMBER_MS = 24 * 60 * 60 * 1000

export interface KubernetesSettings {
  /** URL of the API server. */
  readonly api: string
  /** File of CA certificates (PEM) for https; empty for the system's. */
  readonly caFile: string
  /** File of the bearer token that the broker presents. Read for each request: it is rotated. */
  readonly tokenFile: string
  readonly audience: string
  /** Patterns `<namespace>/<service account>` that may prove. */
  readonly serviceAccounts: readonly string[]
  /** What a runtime class isolates by, by its name. */
  readonly isolation: ReadonlyMap<string, string>
}

export interface KubernetesParts {
  readonly dialer: Dialer
  readonly clock: Clock
  readonly log: Log
  readonly firstUse: FirstUse
}

/** Proof by a projected service-account token that is bound to a pod: TokenReview, then the pod read live. */
export function kubernetesCheck(settings: KubernetesSettings, parts: KubernetesParts): ProofCheck {
  const check = new KubernetesCheck(settings, parts)
  return { name: 'kubernetes', nonce: 'none', verify: (proof, context) => check.verify(proof, context) }
}

/** Whom a TokenReview names. */
interface Reviewed {
  readonly namespace: string
  readonly serviceAccount: string
  readonly pod: string
  readonly podUid: string
}

interface ApiAnswer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

class KubernetesCheck {
  readonly #settings: KubernetesSettings
  readonly #parts: KubernetesParts
  readonly #accounts: readonly ((name: string) => boolean)[]

  constructor(settings: KubernetesSettings, parts: KubernetesParts) {
    this.#settings = settings
    this.#parts = parts
    this.#accounts = settings.serviceAccounts.map(glob)
  }

  async verify({ token, sandbox }: Proof, context: ProofContext): Promise<ProofVerdict> {
    // Read strictly first, so that one credential has one text and its first use can be remembered.
    const jws = readAssertion(token)
    if (isStop(jws)) return jws
    const reviewed = await this.#review(token ?? '')
    if (isStop(reviewed)) return reviewed
    const fault = this.#fault(reviewed, sandbox, context)
    if (fault !== null) return fault
    const pod = await this.#livePod(reviewed)
    if (isStop(pod)) return pod
    const used = this.#parts.firstUse.claim(
      `kubernetes ${hash('sha256', jws.input, 'base64')}`,
      context,
      this.#end(jws),
    )
    if (used !== null) return used
    const workload = `system:serviceaccount:${reviewed.namespace}:${reviewed.serviceAccount}`
    return established({
      check: 'kubernetes',
      attestation: 'token-review',
      platform: 'kubernetes',
      sandbox: reviewed.podUid,
      workload,
      ...this.#facts(pod),
    })
  }

  async #review(token: string): Promise<Reviewed | ProofFailure | Unreachable> {
    const { audience } = this.#settings
    const answer = await this.#ask('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, audiences: [audience] },
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
    // A server that knows no audiences answers none: then the token may be one for the API server itself.
    if (!Array.isArray(audiences) || !audiences.includes(audience)) return failed('the token is for another audience')
    return reviewedOf(member(status, 'user'))
  }

  #fault({ namespace, serviceAccount, pod, podUid }: Reviewed, sandbox: string | null, context: ProofContext) {
    if (namespace !== context.namespace) return failed('the pod is of another namespace than the session')
    if (!this.#accounts.some((matches) => matches(`${namespace}/${serviceAccount}`))) {
      return failed('the service account may not prove')
    }
    if (sandbox !== null && sandbox !== pod && sandbox !== podUid) return failed('the pod is another than "sandbox"')
    return null
  }

  /** A deleted pod's token stays authenticated for some seconds, and its name may be taken by another pod: the UID decides. */
  async #livePod({ namespace, pod, podUid }: Reviewed): Promise<ApiAnswer['body'] | ProofFailure | Unreachable> {
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}`
    const answer = await this.#ask('GET', path)
    if (isStop(answer)) return answer
    if (answer.status === 404) return failed('the pod is gone')
    if (answer.status !== 200) return unreachable(`the API server answers for the pod with status ${answer.status}`)
    const metadata = member(answer.body, 'metadata')
    if (metadata.uid !== podUid) return failed('the pod was replaced by another one')
    if (metadata.deletionTimestamp !== undefined) return failed('the pod is being deleted')
    const { phase } = member(answer.body, 'status')
    return phase === 'Succeeded' || phase === 'Failed' ? failed('the pod has ended') : answer.body
  }

  /** What the API server says of the pod: the isolation of its runtime class, the image of an only container. */
  #facts(pod: ApiAnswer['body']): { readonly isolation?: string; readonly digest?: string } {
    const { runtimeClassName } = member(pod, 'spec')
    const isolation = typeof runtimeClassName === 'string' ? this.#settings.isolation.get(runtimeClassName) : undefined
    const { containerStatuses } = member(pod, 'status')
    const [container, another]: readonly unknown[] = Array.isArray(containerStatuses) ? containerStatuses : []
    const image = another === undefined && isObject(container) ? container.imageID : undefined
    const digest = typeof image === 'string' ? /sha256:[0-9a-f]{64}$/.exec(image)?.[0] : undefined
    return { ...(isolation !== undefined && { isolation }), ...(digest !== undefined && { digest }) }
  }

  #end({ payload }: Jws): number {
    const { exp } = payload
    return typeof exp === 'number' && Number.isFinite(exp) ? exp * 1000 : this.#parts.clock.now() + REMEMBER_MS
  }

  async #ask(method: 'GET' | 'POST', path: string, body?: object): Promise<ApiAnswer | Unreachable> {
    const { clock, dialer, log } = this.#parts
    const { api, caFile, tokenFile } = this.#settings
    const controller = new AbortController()
    const cancel = clock.after(API_TIMEOUT_MS, () => controller.abort())
    try {
      const token = (await readFile(tokenFile, 'utf8')).trim()
      const caPEM = caFile === '' || !api.startsWith('https:') ? {} : { caPEM: await readFile(caFile, 'utf8') }
      const answer = await dialer.pool(new URL(api), 'jwks', caPEM).request({
        method,
        path,
        headers: { authorization: `Bearer ${token}`, accept: 'application/json', 'content-type': 'application/json' },
        body: body === undefined ? null : JSON.stringify(body),
        signal: controller.signal,
      })
      return { status: answer.statusCode, body: await readAnswer(answer.body) }
    } catch (error) {
      log.warn({ api, error: String(error) }, 'the API server was not reached')
      return unreachable('the API server cannot be reached')
    } finally {
      cancel()
    }
  }
}

async function readAnswer(body: AsyncIterable<Uint8Array>): Promise<ApiAnswer['body']> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > MAX_ANSWER_BYTES) throw new Error('the answer is too large')
    chunks.push(chunk)
  }
  const value = parseStrict(Buffer.concat(chunks, size))
  if (!isObject(value)) throw new Error('the answer is no object')
  return value
}

const USERNAME = /^system:serviceaccount:([^:/]+):([^:/]+)$/
const EXTRA = 'authentication.kubernetes.io/'

function reviewedOf(user: Readonly<Record<string, unknown>>): Reviewed | ProofFailure {
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

/** A member that is an object; an empty one when it is not. */
function member(object: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const value = object[name]
  return isObject(value) ? value : {}
}
