import { isDeepStrictEqual } from 'node:util'
import { base32, type Clock, type Ids, rfc3339 } from '@plat/core'
import { Body, CodedRefusalError, type Endpoint, RefusalError } from '@plat/http/endpoints'
import { type AuditParts, recordDone, recordRefused } from '../audit.ts'
import type { AttestationRegistry } from '../metrics.ts'
import { liveRelease } from './find.ts'
import { type Release, stateOf } from './release.ts'
import type { Releases } from './releases.ts'
import { decodeReleaseRequest, type ReleaseRequest, releaseIdIn } from './request.ts'

/** 160 bits: ids cannot be guessed. */
const ID_BYTES = 20
const ID_FIELDS: ReadonlySet<string> = new Set(['releaseId'])

export interface ManageParts extends AuditParts {
  readonly releases: Releases
  readonly registry: AttestationRegistry
  readonly releaseTtlMs: number
  readonly clock: Clock
  readonly ids: Ids
}

/** Endpoints for holders of the service token. */
export function manageEndpoints(parts: ManageParts): readonly Endpoint[] {
  const common = { opensWith: 'token', takes: 'json', errors: 'coded' } as const
  return [
    { path: '/v1/releases', ...common, isNewWork: true, handle: (bytes) => create(parts, bytes) },
    { path: '/v1/releases/state', ...common, handle: async (bytes) => describe(known(parts, bytes)) },
    { path: '/v1/releases/end', ...common, handle: (bytes) => end(parts, bytes) },
  ]
}

/** A repeated request returns the same pending release, for an operator that lost the response. */
async function create(parts: ManageParts, bytes: Uint8Array): Promise<object> {
  const { releases, registry, clock, ids, releaseTtlMs } = parts
  const requested = decodeReleaseRequest(bytes)
  if (requested.endsAt !== null && requested.endsAt <= clock.now()) {
    throw new CodedRefusalError(400, 'invalid_request', 'endsAt: must lie in the future')
  }
  return releases.alone(requested.name, async () => {
    const there = releases.ofSession(requested.name)
    if (there?.ended === null) return describe(sameRelease(there, requested))
    const redeemBy = Math.min(clock.now() + releaseTtlMs, requested.endsAt ?? Number.POSITIVE_INFINITY)
    const release = { ...requested, id: base32(ids.random(ID_BYTES)), redeemBy, holder: null, ended: null }
    await recordDone(parts, 'release', release, { expiresAt: rfc3339(redeemBy) })
    await releases.write(release)
    registry.counter('plat_attest_releases_created_total').inc()
    return describe(release)
  })
}

function sameRelease(there: Release, { name, ...requested }: ReleaseRequest): Release {
  const { session, checks, digests, isolation, endsAt } = there
  const same = isDeepStrictEqual({ session, checks, digests, isolation, endsAt }, requested)
  if (same && stateOf(there) === 'pending') return there
  throw new CodedRefusalError(409, 'release_exists', `session ${name.session} has a release: end it first`)
}

/** Ends a release. The last token stays valid to its end, unless the session is revoked. */
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

/** Returns the release that a body names, ended or not. */
function known({ releases }: ManageParts, bytes: Uint8Array): Release {
  const id = releaseIdIn(Body.parse(bytes, ID_FIELDS))
  const release = releases.get(id)
  if (release !== null) return release
  throw new CodedRefusalError(404, 'unknown_release', 'there is no such release, or it ended long ago')
}

/** Returns the public members of a release. */
function describe(release: Release): object {
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
