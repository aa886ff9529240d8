import { CodedRefusalError } from '@plat/http/endpoints'
import type { Release } from './release.ts'
import type { Releases } from './releases.ts'

/** Returns a release that has not ended. Throws `unknown_release`, which does not reveal whether it ever existed. */
export function liveRelease(releases: Releases, id: string): Release {
  const release = releases.get(id)
  if (release?.ended === null) return release
  throw new CodedRefusalError(404, 'unknown_release', 'there is no such release, or it has ended')
}
