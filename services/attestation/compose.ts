import { type Clock, type Ids, reasonOf, watchedPool } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Endpoint } from '@plat/http/endpoints'
import { openServiceLedger } from '@plat/ledger'
import type { Log, OverloadState } from '@plat/process'
import { fileJournals } from '@plat/state'
import { createProofVerifier, memoryReplayStore } from '@plat/tokens'
import { Challenges } from './challenge/challenges.ts'
import { challengeEndpoint } from './challenge/endpoint.ts'
import { Broker } from './evidence/broker.ts'
import type { AttestationSettings } from './flags.ts'
import { type AttestationRegistry, attestationPools } from './metrics.ts'
import { manageEndpoints } from './release/manage.ts'
import { redeemEndpoint } from './release/redeem.ts'
import { decodeRelease } from './release/release.ts'
import { Releases } from './release/releases.ts'
import { keepReleases } from './renew/keeper.ts'
import { renewEndpoint } from './renew/renew.ts'
import { Revoker } from './renew/revoker.ts'

export interface ComposeOptions {
  readonly settings: AttestationSettings
  readonly brokerToken: string
  /** Null without `-revoke-url`. */
  readonly adminToken: string | null
  readonly registry: AttestationRegistry
  readonly overload: Pick<OverloadState, 'active'>
  readonly dialer: Dialer
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** The service without its listener. */
export interface Composed {
  readonly endpoints: readonly Endpoint[]
  readonly releases: Releases
  close(): Promise<void>
}

/** Opens every file that the settings name and puts the endpoints together. What was opened is closed when one fails. */
export async function composeAttestation(options: ComposeOptions): Promise<Composed> {
  const { settings, registry } = options
  const pools = attestationPools(registry)
  const opened: { close(): void | Promise<void> }[] = []
  const close = async () => {
    for (const each of opened.splice(0).reverse()) await each.close()
  }
  const keep = <T extends { close(): void | Promise<void> }>(one: T): T => {
    opened.push(one)
    return one
  }
  try {
    const ledger = settings.auditPath === '' ? null : keep(await openServiceLedger(settings.auditPath, options))
    const releases = keep(await openReleases(options))
    const revoker = keep(
      new Revoker({ ...options, url: settings.revokeUrl, observer: pools.of('pending_revocations') }),
    )
    const parts = { ...options, ...settings, ledger, releases, revoker, ...evidenceParts(options) }
    const keeper = keep(keepReleases(parts))
    await keeper.now()
    const endpoints = [...manageEndpoints(parts), challengeEndpoint(parts), redeemEndpoint(parts), renewEndpoint(parts)]
    return { endpoints, releases, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function openReleases({ settings, registry, clock, log }: ComposeOptions): Promise<Releases> {
  const onFault = (err: unknown) => log.error({ err }, 'the journal of releases failed')
  const observer = attestationPools(registry).of('releases')
  try {
    const spec = { name: 'releases', path: settings.statePath, decode: decodeRelease }
    return await Releases.open({ journal: await fileJournals(clock).open(spec), clock, onFault, observer })
  } catch (error) {
    throw new Error(`-state-path: ${reasonOf(error)}`)
  }
}

/** Dependencies of the verification of evidence. */
function evidenceParts({ settings, brokerToken, dialer, clock, log, registry }: ComposeOptions) {
  const pools = attestationPools(registry)
  const proofs = watchedPool({ name: 'proofs', observer: pools.of('proofs') })
  return {
    broker: new Broker({ url: settings.brokerUrl, caFile: settings.brokerCaFile, token: brokerToken, dialer, log }),
    challenges: new Challenges(clock, pools.of('challenges')),
    proofs: createProofVerifier({ clock, replays: memoryReplayStore(clock, proofs) }),
  }
}
