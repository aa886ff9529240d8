import { createDialer } from '@plat/http'
import { createK8sOps } from '../builtin/k8s-ops/index.ts'
import { createWeb } from '../builtin/web/index.ts'
import type { BuiltinServer } from '../call/index.ts'
import { registrySlot } from '../targets/servers/index.ts'
import type { Shared } from './shared.ts'

/** The MCP servers that the gateway is itself, as far as they are enabled. Rejects when one cannot start. */
export async function startBuiltins(shared: Shared): Promise<readonly BuiltinServer[]> {
  const { config, residency, clock, log, keep } = shared
  const web = keep(
    await createWeb({
      ...shared,
      config: config.web,
      agentDomains: (snapshot, agent) => snapshot.get(registrySlot).web(agent),
      dialPages: (allowedCIDRs) => residency.dialer(createDialer({ clock, log, allowedCIDRs })),
    }),
  )
  const cluster = await createK8sOps({ ...shared, config: config.k8sOps })
  return [web.server, cluster].filter((server) => server !== null)
}
