import { reasonOf, watchedPool } from '@plat/core'
import { isDenial } from '../call/index.ts'
import type { Plane, Runner } from '../pipeline/index.ts'
import { createA2aPlane } from '../planes/a2a/index.ts'
import {
  bindingOf,
  createMcpPlane,
  createSharedPlane,
  McpTasks,
  type ReachabilityView,
  type RequestingPlane,
  type ServerPlane,
  type TaskPlane,
} from '../planes/mcp/index.ts'
import { type BatchingPlane, createModelPlane, ResponseCache, Spool } from '../planes/model/index.ts'
import { uploadShares } from '../targets/models/index.ts'
import { registrySlot } from '../targets/servers/index.ts'
import type { Features } from './features.ts'
import type { Shared } from './shared.ts'

/** `/llm/<route>/v1`. */
export function modelPlane(
  shared: Shared,
  { models, contexts, stored, budgets, revocations }: Features,
): BatchingPlane {
  const { config, clock, metrics, log, keep } = shared
  const { isRevoked } = revocations
  const cache = keep(new ResponseCache({ maxBytes: config.modelRouting.cacheMaxBytes, clock, metrics, isRevoked }))
  const { maxBytes, totalBytes, dir } = config.modelUploads
  const pool = watchedPool({
    ...{ name: 'upload_bytes', total: totalBytes, shares: uploadShares(totalBytes) },
    observer: shared.pools.of('upload_bytes'),
  })
  const attemptTimeoutMs = (config.modelRouting.attemptTimeoutSeconds || config.upstreamTimeoutSeconds) * 1000
  return createModelPlane({
    ...limitsOf(shared),
    attemptTimeoutMs,
    routes: models,
    contexts,
    residencyFault: shared.residency.fault,
    ids: shared.ids,
    ...{ spool: new Spool({ dir, pool, ids: shared.ids }), maxUploadBytes: maxBytes },
    onSpoolFault: (error) =>
      log.error({ error: reasonOf(error.cause) }, 'uploads cannot be written to modelUploads.dir'),
    cache,
    metrics,
    affords: budgets.affords,
    files: stored,
    limits: budgets.limits,
  })
}

export function sharedMcpPlane(
  { sealer, config, metrics, pools, clock, ids, log }: Shared,
  { servers, traces }: Features,
  { plane, runner }: { readonly plane: ServerPlane; readonly runner: Runner },
): Plane {
  const leftOut = metrics.counter('plat_gateway_mcp_left_out_total')
  return createSharedPlane({
    ...{ plane, sealer, pools, clock, ids, log },
    callable: servers.callable,
    run: runner.nested,
    traced: (inner) => traces.plane(inner),
    separator: config.mcpSeparator,
    listWaitMs: config.mcpListSeconds * 1000,
    leftOut: (code) => leftOut.inc({ code }),
  })
}

/** `/mcp/<name>`. */
export async function mcpPlane(
  shared: Shared,
  { servers, credentials, revocations, ledgers }: Features,
): Promise<RequestingPlane & ServerPlane & TaskPlane & ReachabilityView> {
  const { config, sealer, log, metrics, pools, snapshots } = shared
  const tasks = shared.keep(await McpTasks.open({ ...shared, ledgers }))
  const plane = createMcpPlane({
    tasks,
    upstreams: {
      upstream: (snapshot, key) => servers.upstream(snapshot, key),
      named(snapshot, identity, server) {
        const found = snapshot.get(registrySlot).resolve(identity, server)
        return isDenial(found) ? null : found
      },
      nameOf: (snapshot, identity, name) => snapshot.get(registrySlot).nameOf(identity, name),
      protocolVersions: (snapshot, identity, server) => snapshot.get(registrySlot).protocolVersions(identity, server),
    },
    clientOf(snapshot, caller) {
      const own = snapshot.get(registrySlot).client(caller)
      const { refusals = config.refusals, answerAfterSeconds = config.approvalAnswerAfterSeconds } = own ?? {}
      return { refusals, answerAfterMs: answerAfterSeconds * 1000 }
    },
    ...limitsOf(shared),
    stdioSocket: shared.stdioSocket ?? null,
    stdioReady: shared.stdioReady ?? (() => null),
    credentials,
    sealer,
    log,
    origins: new Set(config.corsOrigins),
    resourceBaseURL: config.identity.resourceBaseURL || null,
    metrics,
    pools,
  })
  tasks.follow(revocations, (task, owner) => plane.cancelTask(snapshots.current, task, owner))
  return plane
}

/** `/a2a/<ns>/<agent>`. */
export function a2aPlane(shared: Shared, { agents, transactions }: Features): Plane {
  const { sealer } = shared
  return createA2aPlane({
    ...limitsOf(shared),
    agents,
    transactions,
    pages: {
      seal: (caller, server, id) => sealer.seal(bindingOf('a2a-page', caller, server), { id, target: server }),
      open: (caller, server, text) => sealer.open(bindingOf('a2a-page', caller, server), text)?.id ?? null,
    },
  })
}

function limitsOf({ config, dialer, clock, extraCA }: Shared) {
  return {
    dialer,
    clock,
    extraCA,
    maxBodyBytes: config.maxBodyBytes,
    bodyReadTimeoutMs: config.bodyReadTimeoutSeconds * 1000,
    upstreamTimeoutMs: config.upstreamTimeoutSeconds * 1000,
  }
}
