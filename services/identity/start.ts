import { readSecret } from '@plat/config'
import { buildInfo, type Clock, type Ids } from '@plat/core'
import { mountProbes, type TlsOptions } from '@plat/http'
import { BODY_TIMEOUT_MS, createTokenGuard, type Endpoint, endpointRoute } from '@plat/http/endpoints'
import { createRegistry } from '@plat/metrics'
import { type Log, Overload } from '@plat/process'
import type { FastifyInstance } from 'fastify'
import type { Cluster } from './bootstrap/cluster.ts'
import { composeBroker, type ProvidersOf } from './compose.ts'
import { mountFederation } from './federation/federation.ts'
import { defaultSettings, type IdentitySettings, settingProblems } from './flags.ts'
import { mountJwks } from './keys/jwks.ts'
import { RELOAD_EVERY_MS } from './keys/ring.ts'
import type { ProofCheck } from './proof/check.ts'
import { brokerFault, mountLiveness, openListeners } from './serve/listeners.ts'
import { mountMetadata } from './serve/metadata.ts'
import { PoolLog } from './serve/pools.ts'
import { type BrokerState, memoryState } from './state/state.ts'

/** Where the broker token is. */
const TOKEN_VARIABLE = 'PLAT_BROKER_TOKEN'
/** How long requests in flight may take once the broker drains, in milliseconds. */
const DRAIN_MS = 10_000

/** Settings that are not named have their documented defaults. */
export interface StartIdentityOptions extends Partial<IdentitySettings> {
  /** `PLAT_BROKER_TOKEN` or `PLAT_BROKER_TOKEN_FILE`. */
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** The proof checks that are enabled; none when absent. */
  readonly checks?: readonly ProofCheck[]
  /** The credential providers that `-exchange-config` may name; none when absent. */
  readonly providers?: ProvidersOf
  /** In memory when absent. Who gives it closes it, after the broker. */
  readonly state?: BrokerState
  /** Absent: one that reads the load of this process. */
  readonly overload?: Overload
  /** The cluster whose pods `bootstrapListen` serves. */
  readonly cluster?: Cluster
}

/** A running broker. */
export interface Identity {
  /** `http://127.0.0.1:8081` */
  readonly url: string
  readonly port: number
  /** Null without `-bootstrap-listen`. */
  readonly bootstrapUrl: string | null
  /** `/readyz` fails for `-shutdown-delay`, then requests in flight finish. */
  drain(): Promise<void>
  /** Ends at once. */
  close(): Promise<void>
}

/** Starts the identity broker (docs/spec/broker-api.md). Rejects with one line naming the flag, variable or file that is wrong. */
export async function startIdentity(options: StartIdentityOptions): Promise<Identity> {
  const { env, clock, ids, log } = options
  const { checks = [], providers = () => [], cluster = null } = options
  const settings = checkedSettings(options)
  const guard = createTokenGuard(TOKEN_VARIABLE, readSecret(env, TOKEN_VARIABLE))
  const pools = new PoolLog(clock, log)
  const state = options.state ?? memoryState({ clock, ids, pools })
  const broker = await composeBroker({
    ...{ settings, checks, providers, state, cluster, pools, clock, ids, log, env },
  })
  const overload = options.overload ?? new Overload({ clock, log })
  const release = () => Promise.all([overload.close(), broker.close()])
  const build = buildInfo('identity')
  const registry = createRegistry([], { component: 'identity', build })
  let ready = true
  const answers = { guard, realm: 'plat-identity', unknown: 'text', clock, log, overload } as const
  const route = (endpoints: readonly Endpoint[]) => [endpointRoute(answers, endpoints)]
  const mountApi = (app: FastifyInstance) => {
    mountProbes(app, { ready: () => ready, build, metrics: () => registry.expose() })
    mountJwks(app, broker.ring)
    mountFederation(app, broker.federation)
    mountMetadata(app, settings)
  }
  const late = broker.bootstrap
  const listeners = await openListeners(
    { clock, ids, log, ...connectionLimitsOf(settings), renderFault: brokerFault, ...tlsOf(settings) },
    {
      api: { address: settings.listen, raw: route(broker.endpoints), api: mountApi, meter: pools.of('connections') },
      bootstrap: late && {
        address: settings.bootstrapListen,
        raw: route([late.endpoint]),
        api: mountLiveness,
        meter: pools.of('bootstrap_connections'),
      },
    },
  ).catch(async (error: unknown) => {
    await release()
    throw error
  })
  const { api, bootstrap } = listeners
  log.info({ url: api.url, bootstrap: bootstrap?.url, kid: broker.ring.signer().kid }, 'listening')
  return {
    url: api.url,
    port: api.port,
    bootstrapUrl: bootstrap?.url ?? null,
    async drain() {
      ready = false
      await new Promise<void>((resolve) => clock.after(settings.shutdownDelayMs, resolve))
      late?.drain()
      await listeners.drain(DRAIN_MS)
      await release()
    },
    async close() {
      late?.drain()
      await listeners.close()
      await release()
    },
  }
}

/** Throws one line naming the flag that is wrong. */
function checkedSettings(options: StartIdentityOptions): IdentitySettings {
  const { env: _env, clock: _clock, ids: _ids, log: _log, checks: _checks, ...more } = options
  const { providers: _providers, overload: _overload, state: _state, cluster = null, ...given } = more
  const settings = { ...defaultSettings, ...given }
  const [problem] = settingProblems(settings)
  if (problem !== undefined) throw new Error(problem)
  if ((settings.bootstrapListen !== 'off') !== (cluster !== null)) throw new Error('-bootstrap-listen: needs a cluster')
  return settings
}

function connectionLimitsOf({ maxConnectionsPerPeer, trustedProxies }: IdentitySettings) {
  return { limits: { requestMs: BODY_TIMEOUT_MS, maxConnectionsPerPeer }, trustedProxies }
}

/** Any client may present an X.509-SVID: only the proof check verifies it. */
function tlsOf({ tlsCert: certFile, tlsKey: keyFile }: IdentitySettings): { tls?: TlsOptions } {
  if (certFile === '') return {}
  return { tls: { certFile, keyFile, clientCertificates: 'requested', reloadMs: RELOAD_EVERY_MS } }
}
