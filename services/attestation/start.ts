import { readSecret, settingsOf } from '@plat/config'
import { buildInfo, type Clock, type Ids } from '@plat/core'
import { type Dialer, listen, mountProbes, type TlsOptions } from '@plat/http'
import { BODY_TIMEOUT_MS, createTokenGuard, endpointRoute } from '@plat/http/endpoints'
import { createRegistry } from '@plat/metrics'
import { type Log, Overload, type OverloadState } from '@plat/process'
import { composeAttestation } from './compose.ts'
import { type AttestationSettings, attestationFlags, settingProblems } from './flags.ts'
import { type AttestationRegistry, attestationMetrics, attestationPools } from './metrics.ts'

/** Variables of the tokens for `/v1/releases` and for the broker. */
const TOKEN_VARIABLE = 'PLAT_ATTESTATION_TOKEN'
const BROKER_VARIABLE = 'PLAT_BROKER_TOKEN'
const ADMIN_VARIABLE = 'PLAT_ADMIN_TOKEN'
/** How long requests in flight may take once the service drains, in milliseconds. */
const DRAIN_MS = 10_000
/** How often certificate and key are looked at, in milliseconds. */
const TLS_RELOAD_MS = 10_000

/** Settings that are not named have their documented defaults. */
export interface StartAttestationOptions extends Partial<AttestationSettings> {
  /** `PLAT_ATTESTATION_TOKEN` and `PLAT_BROKER_TOKEN`, with `-revoke-url` `PLAT_ADMIN_TOKEN`; each also with `_FILE`. */
  readonly env: NodeJS.ProcessEnv
  readonly dialer: Dialer
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Absent: one that reads the load of this process. */
  readonly overload?: OverloadState
}

/** A running attestation service. */
export interface Attestation {
  /** `http://127.0.0.1:8082` */
  readonly url: string
  /** `/readyz` fails for `-shutdown-delay`, then requests in flight finish. */
  drain(): Promise<void>
  /** Ends at once. */
  close(): Promise<void>
}

/** Starts the attestation service. Rejects with one line naming the flag, variable or file that is wrong. */
export async function startAttestation(options: StartAttestationOptions): Promise<Attestation> {
  const { env, dialer, clock, ids, log, overload: givenOverload, ...given } = options
  const settings = { ...settingsOf(attestationFlags), ...given }
  const [problem] = settingProblems(settings)
  if (problem !== undefined) throw new Error(problem)
  const guard = createTokenGuard(TOKEN_VARIABLE, readSecret(env, TOKEN_VARIABLE))
  const tokens = { brokerToken: brokerTokenIn(env), adminToken: adminTokenIn(env, settings) }
  const build = buildInfo('attestation')
  const registry = createRegistry(attestationMetrics, { component: 'attestation', build })
  const overload = givenOverload ?? new Overload({ clock, log })
  registry.gauge('plat_attest_overloaded').from(() => Number(overload.active))
  const composed = { settings, ...tokens, registry, overload, dialer, clock, ids, log }
  const service = await composeAttestation(composed).catch((error: unknown) => {
    overload.close()
    throw error
  })
  const release = async () => {
    overload.close()
    await service.close()
  }
  let draining = false
  const ready = () => !draining && service.releases.healthy
  const metrics = () => exposed(registry, service.releases)
  const answers = { guard, realm: 'plat-attestation', unknown: 'coded', clock, log, overload } as const
  const listener = await listen({
    address: settings.listen,
    raw: [endpointRoute(answers, service.endpoints)],
    api: (app) => mountProbes(app, { ready, build, metrics }),
    limits: { requestMs: BODY_TIMEOUT_MS, maxConnectionsPerPeer: settings.maxConnectionsPerPeer },
    trustedProxies: settings.trustedProxies,
    meter: attestationPools(registry).of('connections'),
    clock,
    ids,
    log,
    ...tlsOf(settings),
  }).catch(async (error: unknown) => {
    await release()
    throw error
  })
  log.info({ url: listener.url, broker: settings.brokerUrl }, 'listening')
  return {
    url: listener.url,
    async drain() {
      draining = true
      await new Promise<void>((resolve) => clock.after(settings.shutdownDelayMs, resolve))
      await listener.drain(DRAIN_MS)
      await release()
    },
    async close() {
      await listener.close()
      await release()
    },
  }
}

function brokerTokenIn(env: NodeJS.ProcessEnv): string {
  const token = readSecret(env, BROKER_VARIABLE)
  if (token === null) throw new Error(`${BROKER_VARIABLE} or ${BROKER_VARIABLE}_FILE must be set`)
  return token
}

function adminTokenIn(env: NodeJS.ProcessEnv, { revokeUrl }: AttestationSettings): string | null {
  if (revokeUrl === '') return null
  const token = readSecret(env, ADMIN_VARIABLE)
  if (token === null) throw new Error(`-revoke-url: needs ${ADMIN_VARIABLE} or ${ADMIN_VARIABLE}_FILE`)
  return token
}

/** Gauges are computed at exposition. */
function exposed(registry: AttestationRegistry, { pending, active }: { pending: number; active: number }): string {
  registry.gauge('plat_attest_releases_pending').set({}, pending)
  registry.gauge('plat_attest_renewals_active').set({}, active)
  return registry.expose()
}

function tlsOf({ tlsCert: certFile, tlsKey: keyFile }: AttestationSettings): { tls?: TlsOptions } {
  return certFile === '' ? {} : { tls: { certFile, keyFile, clientCertificates: 'none', reloadMs: TLS_RELOAD_MS } }
}
