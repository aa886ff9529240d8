import { type Listener, type ListenOptions, listen, mountProbes, type RawRoute } from '@plat/http'
import type { FastifyInstance } from 'fastify'
import { compose, type GatewayOptions, type Parts } from './compose.ts'
import type { ServerPins } from './decide/pins/index.ts'
import { createPoolMetrics } from './metrics.ts'
import { tlsOf } from './operate/listeners/index.ts'
import { logPosture } from './operate/posture/index.ts'
import { FINAL_WRITE_MS } from './pipeline/live.ts'

/** A gateway that answers calls. */
export interface Gateway {
  readonly url: string
  readonly port: number
  /** Where the admin API, `/metrics` and probes are: `adminListen`, else the same as `url`. */
  readonly adminUrl: string
  /** Where people open the console; null: it is off, or has no pages. */
  readonly consoleUrl: string | null
  /** How the tools of every server stand against their pins, for the status of MCPServers (docs/spec/crds.md). */
  pins(): readonly ServerPins[]
  /** The resource API for `kubectl`, served by a separate listener; absent while `resourceAPI` is off. */
  readonly resourceRoutes: readonly RawRoute[]
  /** Fails `/readyz` for `shutdownDelaySeconds` while it still serves, then gives calls under way `shutdownTimeoutSeconds`. */
  drain(): Promise<void>
}

/** Builds the features, then listens, so that policies, servers and keys are loaded before the first request. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, build, clock, ids, log } = options
  const parts = await compose(options)
  let serving = true
  const readiness = { ready: () => serving, unavailable: parts.unavailable, build }
  const probes = { ...readiness, metrics: () => parts.metrics.expose() }
  const administered = (app: FastifyInstance) => {
    mountProbes(app, probes)
    parts.admin(app)
  }
  const listeners: Listener[] = []
  const tls = tlsOf(config.tls)
  const origins = new Set([...config.corsOrigins, ...parts.origins])
  const pools = createPoolMetrics(parts.metrics)
  const common = { clock, ids, log, origins, ...connectionLimitsOf(config), ...frontOf(parts) }
  const open = async (more: Partial<ListenOptions> & { readonly address: string }) => {
    const listener = await listen({ ...common, ...more })
    listeners.push(listener)
    return listener
  }
  try {
    const separate = config.adminListen !== ''
    const main = await open({
      ...tls.main,
      address: config.listen,
      meter: pools.of('connections'),
      raw: parts.routes,
      tunnel: parts.tunnel,
      api(app) {
        if (separate) mountProbes(app, readiness)
        else administered(app)
        parts.pages(app)
      },
    })
    const adminOptions = { ...tls.admin, address: config.adminListen, raw: parts.adminRoutes, api: administered }
    const admin = separate ? await open({ ...adminOptions, meter: pools.of('admin_connections') }) : main
    log.info({ url: main.url, adminUrl: admin.url, auditPath: config.auditPath }, 'the gateway is listening')
    logPosture(config, log)
    const { pins, resources } = parts
    return { ...urlsOf(main, admin, parts), port: main.port, pins, resourceRoutes: resources.standalone, drain }
  } catch (error) {
    await Promise.all(listeners.map((listener) => listener.close()))
    await parts.close()
    throw error
  }

  async function drain(): Promise<void> {
    serving = false
    if (config.shutdownDelaySeconds > 0) {
      await new Promise<void>((resolve) => clock.after(config.shutdownDelaySeconds * 1000, resolve))
    }
    parts.leave()
    const timeoutMs = config.shutdownTimeoutSeconds * 1000
    // Calls that are aborted at the end of the drain must still be able to write their last frames.
    const cutMs = timeoutMs + FINAL_WRITE_MS
    await Promise.all([parts.live.drain(timeoutMs), ...listeners.map((listener) => listener.drain(cutMs))])
    await parts.close()
    log.info({}, 'the gateway has stopped')
  }
}

function urlsOf({ url }: Listener, { url: adminUrl }: Listener, { hasConsole }: Parts) {
  return { url, adminUrl, consoleUrl: hasConsole ? `${adminUrl}/console/` : null }
}

function frontOf({ hosts, upgrades }: Parts) {
  return { hosts, upgrades }
}

function connectionLimitsOf({ maxConnectionsPerPeer, trustedProxies }: GatewayOptions['config']) {
  return { limits: { maxConnectionsPerPeer }, trustedProxies }
}
