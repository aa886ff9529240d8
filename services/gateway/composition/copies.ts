import type { TokenVault } from '../authn/token-vault/open.ts'
import type { RevocationsFeature } from '../decide/revocations/index.ts'
import type { TaintFeature } from '../decide/taint/index.ts'
import { startActivity } from '../operate/activity/index.ts'
import { startMirrors } from '../operate/mirror/index.ts'
import type { Shared } from './shared.ts'

/** Starts the copies of state in the cluster; returns the observer of calls that they need, or null. */
export async function startCopies(
  shared: Shared,
  {
    revocations,
    vault,
    taint,
  }: {
    readonly revocations: RevocationsFeature
    readonly vault: TokenVault
    readonly taint: Pick<TaintFeature, 'ownLabels'>
  },
) {
  const { keep } = shared
  const mirrors = await startMirrors({ ...shared, revocations: revocations.mirrored, accounts: vault.mirrored })
  if (mirrors !== null) keep(mirrors)
  const activity = await startActivity({ ...shared, taints: (session) => taint.ownLabels(session) })
  return activity === null ? null : keep(activity)
}
