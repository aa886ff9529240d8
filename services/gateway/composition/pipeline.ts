import type { Rec } from '@plat/ledger'
import type { Identity } from '../call/index.ts'
import { createDlp, type Dlp } from '../content/dlp/index.ts'
import { pricingSlot } from '../decide/budgets/index.ts'
import type { PinsFeature } from '../decide/pins/index.ts'
import { policySlot } from '../decide/policy/index.ts'
import { bindToSvid } from '../operate/listeners/index.ts'
import {
  type CallObserver,
  createRunner,
  createRunnerMetrics,
  matrix,
  type Runner,
  resolveByPlane,
  scopeOnlyModels,
  stages,
} from '../pipeline/index.ts'
import { a2aTexts, createAgentRedactReview, createBindReview } from '../planes/a2a/index.ts'
import { createExecRedactReview, execTexts } from '../planes/exec/index.ts'
import {
  createListReview,
  createMessageRedactReview,
  createPinReview,
  mcpTexts,
  type TaskPlane,
} from '../planes/mcp/index.ts'
import {
  createAnswerRedactReview,
  createBatchReview,
  createKeepReview,
  createMeter,
  modelTexts,
} from '../planes/model/index.ts'
import { batchStore } from './batches.ts'
import type { Features } from './features.ts'
import type { Infra } from './infra.ts'
import type { Sandboxes } from './sandbox.ts'
import type { Shared } from './shared.ts'

/** Targets beside servers, models and agents, and what works on those of servers. */
interface Callees {
  readonly pins: PinsFeature
  readonly mcp: TaskPlane
  readonly sandboxes: Sandboxes
  readonly infra: Infra
}

/** The order of the governed call: the request's stages, the reply's reviews. */
export function createPipeline(shared: Shared, features: Features & Callees): Runner {
  const { authenticator, revocations, taint, guards, policies, approvals, budgets, pins, offline } = features
  const { config, audit, live, overload, snapshots, clock, log, metrics, keep } = shared
  const { svidMode: mode, svidTrustDomains: trustDomains } = config.tls
  const svids = { mode, trustDomains, clock, metrics }
  const dlp = createRedaction(shared, features)
  return keep(
    createRunner({
      stages: stages([
        revocations.stage,
        createResolve(shared, features),
        pins.stage,
        taint.stage,
        policies.stage,
        offline.stage,
        dlp.stage,
        guards.stage,
        approvals.stage,
        budgets.stage,
      ]),
      reviews: reviewsOf(features, dlp.redactor),
      matrix: config.modelPolicy === 'policy' ? matrix : scopeOnlyModels,
      authenticate: bindToSvid((arrival) => authenticator.authenticate(arrival.wire), svids),
      ledgers: audit.ledgers,
      auditFailurePolicy: config.auditFailurePolicy,
      live,
      overload,
      bytes: shared.bytes,
      snapshots,
      clock,
      metrics: createRunnerMetrics(metrics),
      policyRevision: (snapshot) => snapshot.get(policySlot).revision,
      prices: (snapshot) => snapshot.get(pricingSlot),
      estimate: features.energy.estimate,
      observers: observersOf(shared, features),
      log,
    }),
  )
}

/** The reviews of responses, in their order. */
function reviewsOf(features: Features & Callees, redactor: Dlp['redactor']) {
  const { servers, agents, taint, guards, policies, budgets, pins } = features
  return [
    guards.review,
    createPinReview(pins.shows),
    createMessageRedactReview(redactor),
    createAnswerRedactReview(redactor),
    createAgentRedactReview(redactor),
    createExecRedactReview(redactor),
    createBindReview(agents.owners),
    features.mcp.taskReview,
    createStoredReview(features),
    createBatchReview(batchStore(features)),
    createListReview(({ snapshot, facts: { identity, target } }, tools) => {
      const sinksOf = (tool: string) => servers.labels(snapshot, target, tool).sinks
      return policies.shows(snapshot, { identity, target, taints: taint.labelsOf(identity), sinksOf }, tools)
    }),
    taint.review,
    agents.review,
    ...features.memory.reviews,
    createMeter(budgets.price, budgets.mediaPrice),
    budgets.toolMeter,
    ...features.traces.reviews,
  ]
}

/** Binds what model providers store to its callers. */
function createStoredReview({ models, stored, taint }: Features) {
  return createKeepReview({
    endpointOf: ({ snapshot, facts: { target } }) => models.route(snapshot, target.key)?.endpoints[0] ?? null,
    labelsOf: (caller) => taint.labelsOf(caller),
    keepResponse: (storing, ids) => stored.keepResponse(storing, ids),
    keepFile: (storing, id) => stored.keepFile(storing, id),
    release: (account, id) => stored.release(account, id),
  })
}

function observersOf(
  { tenancy, metrics }: Shared,
  { sessions, events, activity, sbxd, contexts, captures, traces }: Features,
): readonly CallObserver[] {
  const tenantOf = (identity: Identity) => (tenancy.isOn ? identity.tenant : '')
  const ofRecords = (see: (record: Rec, at: number, tenant: string) => void): CallObserver => ({
    ended: ({ identity }, _outcome, record, at) => void (record !== null && see(record, at, tenantOf(identity))),
    turnedAway: (_request, record, at, identity) => see(record, at, tenantOf(identity)),
  })
  const readers = [
    sessions,
    events,
    ...(activity === null ? [] : [activity]),
    ...(tenancy.isOn ? [tenantCalls(metrics)] : []),
  ]
  const released: CallObserver = { ended: ({ id }) => contexts.released(id) }
  const mirrors = sbxd.see === null ? [] : [ofRecords(sbxd.see)]
  return [...readers.map(({ see }) => ofRecords(see)), ...mirrors, released, ...captures.observers, ...traces.observers]
}

/** Counts the ended calls of tenants. */
function tenantCalls(metrics: Shared['metrics']) {
  const calls = metrics.counter('plat_gateway_tenant_calls_total')
  return {
    see({ action }: Rec, _at: number, tenant: string) {
      if (tenant !== '') calls.inc({ tenant, action: String(action) })
    },
  }
}

/** Resolves the name that a caller uses to its target, by the plane of the call. */
function createResolve({ residency }: Shared, features: Features & Omit<Callees, 'pins' | 'mcp'>) {
  const { servers, models, agents, sandboxes, infra } = features
  const byPlane = resolveByPlane({
    mcp: servers.stage,
    model: models.stage,
    a2a: agents.stage,
    tunnel: sandboxes.egress?.stage ?? null,
    exec: sandboxes.exec?.stage ?? null,
    infra: infra?.stage ?? null,
  })
  return residency.resolve(byPlane, models.places)
}

/** Redaction by the profiles of the configuration and the profile names of servers and routes. */
function createRedaction({ config, metrics }: Shared, { servers, models }: Features) {
  return createDlp({
    config,
    ownProfile({ snapshot, facts: { target } }) {
      if (target.kind === 'a2a') return null
      const place =
        target.kind === 'model' ? models.route(snapshot, target.key) : servers.upstream(snapshot, target.key)
      return place?.dlpProfile ?? null
    },
    texts: { mcp: mcpTexts, model: modelTexts, a2a: a2aTexts, builtin: execTexts },
    metrics,
  })
}
