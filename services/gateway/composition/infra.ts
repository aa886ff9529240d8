import type { RawRoute } from '@plat/http'
import type { Runner } from '../pipeline/index.ts'
import { createInfraPlane, INFRA_PREFIX } from '../planes/infra/index.ts'
import { bindingOf } from '../planes/mcp/index.ts'
import { createInfra } from '../targets/infra/index.ts'
import type { Features } from './features.ts'
import type { Shared } from './shared.ts'

/** The plane of plans with its part of the pipeline; null: it is not enabled. */
export type Infra = ReturnType<typeof startInfra>

/** Audience of a sealed authorization: it is not valid for a server of another name. */
const SERVER = 'plat-infra'

/** Governance of infrastructure plans. */
export function startInfra(
  { config, sealer, windowClock: clock }: Shared,
  { authenticator }: Pick<Features, 'authenticator'>,
) {
  const infra = createInfra({
    config: config.infra,
    seals: {
      seal: (caller, id) => sealer.seal(bindingOf('infra-authorization', caller, SERVER), { id, target: SERVER }),
      open: (caller, text) => sealer.open(bindingOf('infra-authorization', caller, SERVER), text)?.id ?? null,
    },
    missingScopes: authenticator.scopes.missing,
    clock,
  })
  if (infra === null) return null
  const plane = createInfraPlane({
    clock,
    maxPlanBytes: config.infra.maxPlanBytes,
    bodyReadTimeoutMs: config.bodyReadTimeoutSeconds * 1000,
    answer: infra.answer,
  })
  return { plane, stage: infra.stage }
}

/** `/v1/infra/…`; none: the address is like any that does not exist. */
export function infraRoutes(infra: Infra, runner: Runner): readonly RawRoute[] {
  return infra === null ? [] : [{ prefix: INFRA_PREFIX, handle: (exchange) => void runner.run(exchange, infra.plane) }]
}
