import { isDeepStrictEqual } from 'node:util'
import { base32, type Clock, type Ids, rfc3339 } from '@plat/core'
import { Body, CodedRefusalError, type Endpoint, RefusalError } from '@plat/http/endpoints'
import { type AuditParts, recordDone, recordRefused } from '../audit.ts'
import type { AttestationRegistry } from '../metrics.ts'
import { liveRelease } from './find.ts'
import { type Release, stateOf } from './release.ts'
import type { Releases } from './releases.ts'
import { decodeAskedRelease, type ReleaseRequest, releaseIdIn } from './request.ts'

/** 160 bits: nobody finds the release of somebody else by trying. */
const ID_BYTES = 20
const ID_FIELDS: ReadonlySet<string> = new Set(['releaseId'])

export interface ManageParts extends AuditParts {
  readonly releases: Releases
  readonly registry: AttestationRegistry
  readonly releaseTtlMs: number
  readonly clock: Clock
  readonly ids: Ids
}

/** What those who hold the service's token do with releases. */
export function manageEndpoints(parts: ManageParts): readonly Endpoint[] {
  const common = { opensWith: 'token', takes: 'json', errors: 'coded' } as const
  return [
    { path: '/v1/releases', ...common, isNewWork: true, handle: (bytes) => create(parts, bytes) },
    { path: '/v1/releases/state', ...common, handle: async (bytes) => tell(known(parts, bytes)) },
    { path: '/v1/releases/end', ...common, handle: (bytes) => end(parts, bytes) },
  ]
}

/** Who asks again for what is there gets the same release, while it is pending: an operator that lost the answer. */
async function create(parts: ManageParts, bytes: Uint8Array): Promise<object> {
  const { releases, registry, clock, ids, releaseTtlMs } = parts
  const asked = decodeAskedRelease(bytes)
  if (asked.endsAt !== null && asked.endsAt <= clock.now()) {
    throw new CodedRefusalError(400, 'invalid_request', 'endsAt: must lie in the future')
  }
  return releases.alone(asked.name, async () => {
    const there = releases.ofSession(asked.name)
    if (there?.ended === null) return tell(sameRelease(there, asked))
    const redeemBy = Math.min(clock.now() + releaseTtlMs, asked.endsAt ?? Number.POSITIVE_INFINITY)
    const release = { ...asked, id: base32(ids.random(ID_BYTES)), redeemBy, holder: null, ended: null }
    await recordDone(parts, 'release', release, { expiresAt: rfc3339(redeemBy) })
    await releases.write(release)
    registry.counter('plat_attest_releases_created_total').inc()
    return tell(release)
  })
}

function sameRelease(there: Release, { name, ...asked }: ReleaseRequest): Release {
  const { session, checks, digests, isolation, endsAt } = there
  const same = isDeepStrictEqual({ session, checks, digests, isolation, endsAt }, asked)
  if (same && stateOf(there) === 'pending') return there
  throw new CodedRefusalError(409, 'release_exists', `session ${name.session} has a release: end it first`)
}

/** Nothing more is released. The token that was given last lives on to its end, unless the session is revoked. */
async function end(parts: ManageParts, bytes: Uint8Array): Promise<object> {
  const { releases } = parts
  const { id, name } = known(parts, bytes)
  return releases.alone(name, async () => {
    const release = liveRelease(releases, id)
    try {
      await recordDone(parts, 'end', release, { reason: 'ended' })
      await releases.end(release, 'ended')
    } catch (error) {
      if (error instanceof RefusalError) recordRefused(parts, 'end', error, release)
      throw error
    }
    return { releaseId: id, state: 'ended', reason: 'ended' }
  })
}

/** The release that a body names, ended or not. */
function known({ releases }: ManageParts, bytes: Uint8Array): Release {
  const id = releaseIdIn(Body.parse(bytes, ID_FIELDS))
  const release = releases.get(id)
  if (release !== null) return release
  throw new CodedRefusalError(404, 'unknown_release', 'there is no such release, or it ended long ago')
}

/** What is told of a release. */
function tell(release: Release): object {
  const { id, redeemBy, holder, ended } = release
  const state = stateOf(release)
  return {
    releaseId: id,
    state,
    ...(state === 'pending' && { redeemBy: rfc3339(redeemBy) }),
    ...(holder !== null && {
      jti: holder.jti,
      jkt: holder.jkt,
      expiresAt: rfc3339(holder.tokenEndsAt),
      substrate: holder.result,
    }),
    ...(ended !== null && { reason: ended.why }),
  }
}
