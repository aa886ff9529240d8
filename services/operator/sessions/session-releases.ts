import { reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { Resource } from '@plat/resources'
import type { SessionObjects } from './cluster.ts'
import { isPlan, type Plan } from './life/admission.ts'
import type { Hindrance } from './life/hindrance.ts'
import { ATTESTATION_URL, RELEASE_ID } from './pod/environment.ts'
import { hasToken } from './pod/pod.ts'
import { releaseSecret } from './pod/sandbox.ts'
import type { Releaser } from './releases.ts'
import type { ReleaseVariables } from './status.ts'

type Session = Resource<'AgentSession'>

interface SessionReleasesParts {
  /** Null: releases of attested sessions are created by others. */
  readonly releaser: Releaser | null
  readonly objects: Pick<SessionObjects, 'putSecret'>
  readonly log: Log
}

/** The releases of attested sessions: their ids are in the status of the sessions. */
export class SessionReleases {
  readonly #parts: SessionReleasesParts

  constructor(parts: SessionReleasesParts) {
    this.#parts = parts
  }

  /** Returns the release that the operator created for a session; null: none. */
  of({ status }: Session): string | null {
    return this.#parts.releaser === null ? null : (status?.env?.[RELEASE_ID] ?? null)
  }

  variables(releaseId: string | null): ReleaseVariables | null {
    const { releaser } = this.#parts
    return releaser === null || releaseId === null ? null : { [RELEASE_ID]: releaseId, [ATTESTATION_URL]: releaser.url }
  }

  /** Creates the release of an attested session, before there is a pod that uses it. Returns null for other sessions. */
  async create(
    session: Session,
    { plan, endsAt }: { readonly plan: Plan | Hindrance; readonly endsAt: number | null },
    signal: AbortSignal,
  ): Promise<string | null> {
    const { releaser, objects } = this.#parts
    const { mode, scopes } = session.status ?? {}
    if (releaser === null || mode === undefined || !isPlan(plan) || hasToken(plan.tier.spec)) return null
    const id = await releaser.create(session, { ...plan, scopes: scopes ?? plan.scopes }, endsAt)
    if (mode === 'direct') await objects.putSecret(session, releaseSecret(session, id), signal)
    return id
  }

  /** Ends the release of a session that is suspended: the next one needs the name of the session. */
  async end(session: Session): Promise<void> {
    const id = this.of(session)
    if (id !== null) await this.#parts.releaser?.end(id)
  }

  /** Likewise at the end of a session, which does not wait for it: the tokens are revoked, and without its pod the release is not renewed. */
  async endAtLast(session: Session): Promise<void> {
    await this.end(session).catch((error: unknown) => {
      const { namespace, name } = session.metadata
      const failed = { session: `${namespace}/${name}`, error: reasonOf(error) }
      this.#parts.log.warn(failed, 'the release of an attested session was not ended: it ends when it is not renewed')
    })
  }
}
