import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { createDialer, type RawRoute } from '@plat/http'
import type { FastifyInstance } from 'fastify'
import { createAdmin } from './admin/index.ts'
import { isDenial, Snapshots } from './call/index.ts'
import { runnerMetrics } from './counting.ts'
import { createAudit } from './features/audit/index.ts'
import { createAuthenticator } from './features/identity/index.ts'
import { createPolicies } from './features/policy/index.ts'
import { createRevocations } from './features/revocations/index.ts'
import { createServers, registrySlot } from './features/servers/index.ts'
import type { GatewayOptions } from './gateway.ts'
import { createGatewayMetrics, type GatewayMetrics } from './metrics.ts'
import { createLiveCalls, createRunner, type LiveCalls, matrix, type Plane, stages } from './pipeline/index.ts'
import { createListReview, createMcpPlane, createSealer, loadSealKeys } from './planes/mcp/index.ts'

/** What `gateway.ts` serves. */
export interface Parts {
  readonly routes: readonly RawRoute[]
  /** Host names that a listener on loopback answers to, beside the loopback ones. */
  readonly hosts: readonly string[]
  readonly metrics: GatewayMetrics
  readonly live: LiveCalls
  /** Adds the admin API to the listener that serves it. */
  admin(app: FastifyInstance): void
  close(): Promise<void>
}

/**
 * The composition root: builds the features in order, lists the stages, mounts the planes. No logic.
 * Rejects when a feature cannot start; what was started before it is stopped.
 */
export async function compose(options: GatewayOptions): Promise<Parts> {
  const closers: (() => unknown)[] = []
  const close = async () => {
    for (const stop of closers.splice(0).reverse()) await stop()
  }
  try {
    return await build(options, closers, close)
  } catch (error) {
    await close()
    throw error
  }
}

async function build(
  { config, env, build, clock, ids, log }: GatewayOptions,
  closers: (() => unknown)[],
  close: () => Promise<void>,
): Promise<Parts> {
  const keep = <T extends { close(): unknown }>(part: T): T => {
    closers.push(() => part.close())
    return part
  }
  const metrics = createGatewayMetrics(build)
  const snapshots = new Snapshots()

  const audit = keep(await createAudit({ config, clock, ids, log, metrics }))
  const admin = createAdmin({
    env,
    ledgers: audit.ledgers,
    log,
    onAuditError: () => metrics.counter('plat_gateway_audit_errors_total').inc(),
  })
  const dialer = keep(createDialer({ clock, log }))
  const live = keep(createLiveCalls(clock))
  const authenticator = keep(
    await createAuthenticator({
      config: config.identity,
      dialer,
      clock,
      log,
      metrics: {
        failed: (reason) => metrics.counter('plat_gateway_auth_failures_total').inc({ reason }),
        trustedKeys: (count) => metrics.gauge('plat_gateway_trusted_keys').set({}, count),
      },
    }),
  )
  const revocations = keep(
    createRevocations({
      live,
      clock,
      metrics: { revoked: (scope) => metrics.counter('plat_gateway_revoked_total').inc({ scope }) },
    }),
  )
  const servers = keep(
    createServers({
      config,
      snapshots,
      clock,
      log,
      metrics: { configured: (count) => metrics.gauge('plat_gateway_upstreams_configured').set({}, count) },
    }),
  )
  const policies = keep(
    createPolicies({
      config,
      snapshots,
      clock,
      log,
      metrics: {
        loaded(count, generation) {
          metrics.gauge('plat_gateway_policies_loaded').set({}, count)
          metrics.gauge('plat_gateway_policy_revision').set({}, generation)
        },
        reloaded: (result) => metrics.counter('plat_gateway_policy_reloads_total').inc({ result }),
      },
    }),
  )
  await Promise.all([servers.check(), policies.check()])

  const runner = keep(
    createRunner({
      stages: stages([revocations.stage, servers.stage, policies.stage]),
      reviews: [createListReview((call, tool) => policies.judge(call.snapshot, call.facts, tool))],
      matrix,
      authenticate: (arrival) => authenticator.authenticate(arrival.wire),
      ledgers: audit.ledgers,
      auditFailurePolicy: config.auditFailurePolicy,
      live,
      snapshots,
      clock,
      metrics: runnerMetrics(metrics),
      log,
    }),
  )

  const extraCA = config.upstreamCAFile === '' ? null : await readFile(config.upstreamCAFile, 'utf8')
  const mcp = createMcpPlane({
    upstreams: {
      upstream: (snapshot, key) => servers.upstream(snapshot, key),
      named(snapshot, identity, server) {
        const found = snapshot.get(registrySlot).resolve(identity, server)
        return isDenial(found) ? null : found
      },
    },
    dialer,
    sealer: createSealer(await loadSealKeys({ env, stateDir: path.dirname(config.auditPath), ids }), clock, ids),
    clock,
    log,
    extraCA,
    maxBodyBytes: config.maxBodyBytes,
    bodyReadTimeoutMs: config.bodyReadTimeoutSeconds * 1000,
    upstreamTimeoutMs: config.upstreamTimeoutSeconds * 1000,
    origins: new Set(config.corsOrigins),
    resourceBaseURL: config.identity.resourceBaseURL || null,
  })
  const mount = (prefix: string, plane: Plane): RawRoute => ({
    prefix,
    handle: (exchange) => void runner.run(exchange, plane),
  })
  const base = config.identity.resourceBaseURL
  return {
    routes: [mount('/mcp/', mcp)],
    hosts: base === '' ? [] : [new URL(base).hostname],
    metrics,
    live,
    admin: (app) => admin.mount(app, []),
    close,
  }
}
