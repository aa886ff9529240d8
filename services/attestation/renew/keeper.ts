import { type Clock, PeriodicTask } from '@plat/core'
import { CodedRefusalError } from '@plat/http/endpoints'
import { type AuditParts, recordDone, recordRefused } from '../audit.ts'
import type { AttestationRegistry } from '../metrics.ts'
import type { EndReason, Release } from '../release/release.ts'
import type { Releases } from '../release/releases.ts'

/** Interval of the check for expired releases, in milliseconds. */
const LOOK_EVERY_MS = 5_000

export interface KeeperParts extends AuditParts {
  readonly releases: Releases
  readonly registry: AttestationRegistry
  readonly clock: Clock
}

/** Periodically ends releases that were not redeemed, sessions that ended, and sessions that did not renew their token in time. */
export function keepReleases(parts: KeeperParts): PeriodicTask {
  const { clock, log } = parts
  const job = async () => {
    for (const release of parts.releases.open()) {
      const why = overWhy(release, clock.now())
      if (why !== null && !parts.releases.isBusy(release.name)) await end(parts, release, why)
    }
    await parts.releases.compact()
  }
  return new PeriodicTask({
    clock,
    everyMs: LOOK_EVERY_MS,
    job,
    onFault: (err) => log.error({ err }, 'a release could not be ended'),
  })
}

/** Returns null while the release has not expired. */
export function overWhy({ holder, redeemBy, endsAt }: Release, now: number): EndReason | null {
  if (endsAt !== null && endsAt <= now) return 'session_over'
  if (holder === null) return redeemBy <= now ? 'not_redeemed' : null
  return holder.tokenEndsAt <= now ? 'lapsed' : null
}

async function end(parts: KeeperParts, release: Release, why: EndReason): Promise<void> {
  const { releases, registry } = parts
  await releases.alone(release.name, () => releases.end(release, why))
  if (why !== 'lapsed') return recordDone(parts, 'end', release, { reason: why })
  registry.counter('plat_attest_renewal_failure_total').inc({ reason: why })
  const refusal = new CodedRefusalError(403, why, 'the token ended without a renewal')
  recordRefused(parts, 'renew', refusal, release)
}
