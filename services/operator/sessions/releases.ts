import { readJsonObject, reasonOf, rfc3339 } from '@plat/core'
import type { Dialer } from '@plat/http'
import { type Members, textOf } from '@plat/kubernetes'
import type { Resource } from '@plat/resources'
import { ReconcileError } from '../controllers/controller.ts'
import type { Plan } from './life/admission.ts'
import { tokenContentOf } from './mint.ts'

/** Deadline of one request, in milliseconds. */
const REQUEST_MS = 3_000
const MAX_RESPONSE_BYTES = 256 * 1024
/** The check of a tier that names none: hardware evidence. */
const DEFAULT_CHECKS = ['tee']
/** The release is unknown by now, so that nothing of it is left to end. */
const NOT_FOUND = 404

export interface ReleaserOptions {
  /** URL of the attestation service, without a slash at the end. */
  readonly url: string
  readonly token: string
  /** PEM of an authority that the service's certificate is of, beside the system's; absent: none. */
  readonly caPEM?: string
  readonly dialer: Dialer
}

/** Creates and ends the releases by which attested sessions redeem tokens (docs/attestation.md). */
export class Releaser {
  readonly #options: ReleaserOptions

  constructor(options: ReleaserOptions) {
    this.#options = options
  }

  /** URL of the service, as workloads reach it. */
  get url(): string {
    return this.#options.url
  }

  /**
   * Returns the id of the session's release; the same while it is pending. `endsAt`: of the session, in milliseconds since the epoch. Throws a
   * `ReconcileError`.
   */
  async create(session: Resource<'AgentSession'>, plan: Plan, endsAt: number | null): Promise<string> {
    const { requireProof = [] } = plan.tier.spec
    const body = {
      session: tokenContentOf(session, plan),
      checks: requireProof.length === 0 ? DEFAULT_CHECKS : requireProof,
      ...(endsAt !== null && { endsAt: rfc3339(endsAt) }),
    }
    const { status, body: answer } = await this.#post('/v1/releases', body)
    const id = textOf(answer, 'releaseId')
    if (status === 200 && id !== '') return id
    throw refused(status, answer)
  }

  /** Ends a release, unless it has ended. Its last token lives to its end. */
  async end(releaseId: string): Promise<void> {
    const { status, body } = await this.#post('/v1/releases/end', { releaseId })
    if (status !== 200 && status !== NOT_FOUND) throw refused(status, body)
  }

  async #post(where: string, body: object): Promise<{ readonly status: number; readonly body: Members }> {
    const { url, token, caPEM, dialer } = this.#options
    const answer = await dialer
      .fetchBytes(url + where, 'jwks', {
        ...(caPEM !== undefined && { caPEM }),
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        maxBytes: MAX_RESPONSE_BYTES,
        timeoutMs: REQUEST_MS,
      })
      .catch((error: unknown) => {
        throw new ReconcileError(
          'AttestationUnreachable',
          `the attestation service does not respond: ${reasonOf(error)}`,
        )
      })
    return { status: answer.status, body: readJsonObject(answer.bytes) ?? {} }
  }
}

function refused(status: number, body: Members): ReconcileError {
  const why = [textOf(body, 'error'), textOf(body, 'message')].filter((part) => part !== '').join(': ')
  return new ReconcileError('ReleaseRefused', `the attestation service refuses with ${status} ${why}`)
}
