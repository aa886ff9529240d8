import { createDialer, type RawRoute, type TunnelRequest } from '@plat/http'
import { createBrowserGate } from '../builtin/web/index.ts'
import { createLiveView } from '../operate/live-view/index.ts'
import type { Plane, Runner } from '../pipeline/index.ts'
import { createConnectPlane, placeOf } from '../planes/connect/index.ts'
import { createExecPlane, isExec } from '../planes/exec/index.ts'
import { createEgressResolve } from '../targets/egress/index.ts'
import { createExec } from '../targets/exec/index.ts'
import { registrySlot } from '../targets/servers/index.ts'
import type { Features } from './features.ts'
import type { Shared } from './shared.ts'

/** Services of the gateway for sandboxes. */
export type Sandboxes = Awaited<ReturnType<typeof startSandboxes>>

/** The way out of a browser and the way into a code interpreter, as far as they are enabled. */
export async function startSandboxes(shared: Shared, features: LiveViewParts) {
  const { egress, exec } = { egress: startEgress(shared, features), exec: await startExec(shared, features) }
  return { egress, exec, liveView: await startLiveView(shared, features) }
}

type LiveViewParts = Pick<Features, 'ledgers' | 'sessions' | 'revocations' | 'authenticator'>

async function startLiveView(shared: Shared, { ledgers, sessions, revocations, authenticator }: LiveViewParts) {
  const { tenancy, keep } = shared
  const liveView = await createLiveView({
    ...shared,
    ledgers,
    find: (name) => sessions.find(name),
    // Without a list of tenants, the broker's keys name them.
    hasStopped: (session) =>
      revocations.hasStopped(
        tenancy.isOn ? session : { ...session, tenant: authenticator.tenantOf(session.namespace) },
      ),
    followCuts: revocations.followCuts,
  })
  return liveView === null ? null : keep(liveView)
}

/** Handler of CONNECT; undefined if the egress proxy is disabled. */
export function tunnelRoute({ egress }: Sandboxes, runner: Runner): ((request: TunnelRequest) => void) | undefined {
  return egress === null ? undefined : (request) => void runner.connect(request, egress.plane)
}

/** `POST /v1/sessions/{id}/exec`, on both listeners. */
export function execRoutes({ exec }: Sandboxes, runner: Runner): readonly RawRoute[] {
  if (exec === null) return []
  return [{ prefix: '/v1/sessions/', takes: isExec, handle: (exchange) => void runner.run(exchange, exec.plane) }]
}

function startEgress(shared: Shared, { authenticator }: Pick<Features, 'authenticator'>) {
  const { config, residency, clock, log, keep } = shared
  if (!config.egress.enabled) return null
  const { allowedCIDRs } = config.web
  const dialer = keep(residency.dialer(createDialer({ clock, log, allowedCIDRs })))
  const plane: Plane = createConnectPlane({ dialer, clock })
  const stage = createEgressResolve({
    ...shared,
    placeOf,
    taints: config.web.taintLabels,
    gate: createBrowserGate(config.web, (snapshot, agent) => snapshot.get(registrySlot).browser(agent)),
    missingScopes: authenticator.scopes.missing,
  })
  return { plane, stage }
}

async function startExec(shared: Shared, { authenticator }: Pick<Features, 'authenticator'>) {
  const { config, dialer, clock, keep } = shared
  if (!config.exec.enabled) return null
  const exec = keep(await createExec({ ...shared, missingScopes: authenticator.scopes.missing }))
  const plane: Plane = createExecPlane({
    dialer,
    clock,
    maxBodyBytes: config.maxBodyBytes,
    bodyReadTimeoutMs: config.bodyReadTimeoutSeconds * 1000,
    maxTimeoutSeconds: config.exec.maxTimeoutSeconds,
    maxOutputBytes: config.exec.maxOutputBytes,
    sandbox: (identity) => exec.sandbox(identity),
  })
  return { plane, stage: exec.stage }
}
