import { cloudConfigOf } from '@plat/cloud'
import type { Clock, Ids } from '@plat/core'
import { createDialer } from '@plat/http'
import type { Endpoint } from '@plat/http/endpoints'
import { createKeyServices } from '@plat/key-services'
import { type Ledger, openServiceLedger } from '@plat/ledger'
import type { Log } from '@plat/process'
import { CLASSICAL_AND_ML_DSA, createProofVerifier, createVerifier } from '@plat/tokens'
import { bindEndpoint } from './bind/endpoint.ts'
import type { Cluster } from './bootstrap/cluster.ts'
import { type Bootstrap, createBootstrap } from './bootstrap/endpoint.ts'
import { openTransactionVerifier } from './delegate/transaction-token.ts'
import { openExchangeConfig } from './exchange/config.ts'
import { exchangeEndpoint } from './exchange/endpoint.ts'
import type { CredentialProvider } from './exchange/provider.ts'
import { cloudWarnings } from './federation/clouds.ts'
import { type Federation, openFederation } from './federation/federation.ts'
import type { IdentitySettings } from './flags.ts'
import { introspectionEndpoint } from './introspect/endpoint.ts'
import { createKeyRing, type KeyRing } from './keys/ring.ts'
import { mintEndpoint } from './mint/mint.ts'
import { nonceEndpoint } from './nonce/endpoint.ts'
import type { ProofCheck } from './proof/check.ts'
import { createProofs } from './proof/proofs.ts'
import type { BrokerPools } from './serve/pools.ts'
import { RefusalShares } from './serve/refusals.ts'
import { createRevocations, type Revocations } from './sessions/revocations.ts'
import { createSessions } from './sessions/sessions.ts'
import type { BrokerState } from './state/state.ts'
import { verifyEndpoint } from './verify/verify.ts'

/** Null: there is no `-federation-key`, and nothing that clouds would take. */
export type ProvidersOf = (federation: Federation | null) => readonly CredentialProvider[]

export interface ComposeOptions {
  readonly settings: IdentitySettings
  /** The proof checks that are enabled. */
  readonly checks: readonly ProofCheck[]
  /** The credential providers that an audience may name. */
  readonly providers: ProvidersOf
  /** State of this process, or shared by all replicas. */
  readonly state: BrokerState
  /** Null: no pods are bootstrapped. */
  readonly cluster: Cluster | null
  readonly pools: BrokerPools
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Credentials and endpoints of key services. */
  readonly env: NodeJS.ProcessEnv
}

/** The broker without its listener. */
export interface Broker {
  readonly endpoints: readonly Endpoint[]
  /** Null without a cluster. */
  readonly bootstrap: Bootstrap | null
  readonly ring: KeyRing
  /** Null without `-federation-key`. */
  readonly federation: Federation | null
  close(): Promise<void>
}

interface Closable {
  close(): void | Promise<void>
}

/** Dependencies shared by the endpoints. */
interface Shared extends Pick<Broker, 'ring' | 'federation'> {
  readonly revocations: Revocations
  /** Where issuance is recorded beside the log; null without `-audit-path`. */
  readonly ledger: Ledger | null
  readonly refusals: RefusalShares | null
}

/** Opens every file that the settings name and puts the endpoints together. What was opened is closed when one fails. */
export async function composeBroker(options: ComposeOptions): Promise<Broker> {
  const opened: Closable[] = []
  const close = async () => {
    for (const each of opened.splice(0).reverse()) await each.close()
  }
  try {
    const keep = <T extends Closable>(one: T): T => {
      opened.push(one)
      return one
    }
    const { auditPath } = options.settings
    const ledger = auditPath === '' ? null : keep(await openServiceLedger(auditPath, options))
    const lost = () => options.log.warn({}, 'the count of refusals is missing from the audit ledger')
    const refusals =
      ledger === null
        ? null
        : keep(
            new RefusalShares({
              ledger,
              clock: options.clock,
              observer: options.pools.of('recorded_refusals'),
              onLost: lost,
            }),
          )
    const keys = keep(openKeys(options, keep))
    const federation = await openFederation({ ...options, keys })
    if (federation !== null) keep(federation)
    const ring = keep(await createKeyRing({ ...options, keys, federation }))
    const revocations = keep(createRevocations({ path: options.settings.revocationsFile, ...options }))
    await revocations.start()
    const endpoints = await endpointsOf(options, { ring, federation, revocations, ledger, refusals }, keep)
    const { cluster } = options
    const bootstrap =
      cluster && createBootstrap({ ...options, ...cluster, tenancy: ring, revocations, ledger, refusals })
    return { ring, federation, endpoints, bootstrap, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Keys in files and in key services, with the cloud credentials of the environment. */
function openKeys(
  { env, clock, ids, log, pools }: ComposeOptions,
  keep: <T extends Closable>(one: T) => T,
): ReturnType<typeof createKeyServices> {
  const dialer = keep(createDialer({ clock, log }))
  const observer = pools.of('key_service_requests')
  return createKeyServices({ cloudCredentials: cloudConfigOf(env), env, dialer, clock, ids, log, observer })
}

async function endpointsOf(
  options: ComposeOptions,
  { ring, federation, revocations, ledger, refusals }: Shared,
  keep: <T extends Closable>(one: T) => T,
): Promise<readonly Endpoint[]> {
  const { settings, clock, ids, log, checks, state } = options
  const providers = options.providers(federation)
  const { issuer, audience, trustDomain } = settings
  const tokens = { issuer, audience, trustDomain, algorithms: CLASSICAL_AND_ML_DSA }
  const verifier = createVerifier({ ...tokens, keys: ring.trusted, leewaySeconds: 0, clock })
  const sessions = createSessions(verifier, ring, revocations)
  const config = keep(await openExchangeConfig({ path: settings.exchangeConfig, providers, clock, log }))
  if (federation !== null) {
    for (const warning of cloudWarnings(federation.signer().alg, config.audiences())) log.warn({}, warning)
  }
  const transactions = await openTransactionVerifier(options)
  if (transactions !== null) keep(transactions)
  const mintProofs = createProofs(checks, { requireProof: settings.requireProof, nonces: state.nonces, log })
  const proofs = createProofVerifier({ clock, replays: state.replays })
  const { records } = state
  const issuing = { settings, sessions, tenancy: ring, proofs, records, config, clock, ids, log, ledger, refusals }
  return [
    mintEndpoint({ settings, tenancy: ring, proofs: mintProofs, clock, ids, log, ledger, refusals }),
    verifyEndpoint(sessions),
    bindEndpoint(issuing),
    nonceEndpoint(state.nonces, mintProofs),
    exchangeEndpoint({ ...issuing, transactions, once: state.once }),
    introspectionEndpoint({ sessions, records }),
  ]
}
