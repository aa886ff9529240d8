import { canonicalJson } from '@plat/core'
import { type Applied, type Kind, type Resource, type ResourceStore, tierOfAgent } from '@plat/resources'
import type { EndpointJurisdictions } from '@plat/resources/regions/endpoint'
import type { Sovereignty } from '@plat/resources/sovereignty'
import { keyOf } from '../render/declared.ts'
import { droppedTools, tiersByName } from '../render/limits/provider-tools.ts'
import { pinsOf, policyPins } from '../render/pins.ts'
import { sovereigntyInForce } from '../render/sovereignty.ts'
import { partsOfLine } from '../validate/problem.ts'
import { type Condition, type Finding, withFindings } from './conditions.ts'
import { observed, type PinReport, pinnedFinding } from './pinned.ts'
import { reliedOnByAgent, reliedOnByServer, sovereignFinding } from './sovereign.ts'

/** Inputs of statuses. */
export interface Known {
  readonly servers: readonly Resource<'MCPServer'>[]
  readonly policies: readonly Resource<'ToolPolicy'>[]
  readonly sovereignty: readonly Resource<'SovereigntyPolicy'>[]
  readonly tiers: readonly Resource<'TrustTier'>[]
  /** `endpointJurisdictions` of the gateway. */
  readonly endpoints: EndpointJurisdictions
  /** Number per Agent by `<namespace>/<name>`; null if sessions are not created from resources here. */
  readonly activeSessions: ReadonlyMap<string, number> | null
  /** Declared resources that are not in force, one line each: `<Kind> <namespace>/<name> <path>: <why>`. */
  readonly refused: readonly string[]
  /** Returns what the gateway reports of the tools of a server, or null. */
  readonly pinReport: (server: Resource<'MCPServer'>) => PinReport | null
  /** Returns the condition `Running` of a stdio server on a cluster; null: it does not run here. */
  readonly running: (server: Resource<'MCPServer'>) => Finding | null
}

/** Writes the status of one object after another (docs/spec/crds.md), from one state of everything. */
export class Statuses {
  /** Why an object is not in force, by `<Kind> <namespace>/<name>`. */
  readonly #refused = new Map<string, string[]>()
  readonly #pinReport: Known['pinReport']
  readonly #running: Known['running']
  /** Null if there is no SovereigntyPolicy. */
  readonly #sovereignty: Sovereignty | null
  /** By `<namespace>/<name>`. */
  readonly #servers: ReadonlyMap<string, Resource<'MCPServer'>>
  readonly #policyPins: ReturnType<typeof policyPins>

  readonly #tiers: ReturnType<typeof tiersByName>
  readonly #activeSessions: Known['activeSessions']
  readonly #endpoints: EndpointJurisdictions

  constructor(known: Known) {
    const { servers, policies, sovereignty, tiers, endpoints, activeSessions, refused, pinReport, running } = known
    this.#running = running
    this.#endpoints = endpoints
    this.#tiers = tiersByName(tiers)
    this.#activeSessions = activeSessions
    this.#pinReport = pinReport
    for (const line of refused) {
      const { object, why } = partsOfLine(line)
      const reasons = this.#refused.get(object)
      if (reasons === undefined) this.#refused.set(object, [why])
      else reasons.push(why)
    }
    this.#sovereignty = sovereigntyInForce({ sovereignty })
    this.#servers = new Map(servers.map((server) => [keyOf(server), server]))
    this.#policyPins = policyPins(policies, servers)
  }

  /**
   * Writes the status of an object where it says something new. `now`: RFC 3339. Rejects when the store does not take it; an object that
   * is gone by now needs none.
   */
  async write(store: Pick<ResourceStore, 'applyStatus'>, object: Resource, now: string): Promise<void> {
    if (isServer(object)) return this.#writeServer(store, object, now)
    if (isAgent(object)) return this.#writeAgent(store, object, now)
    const status = { ...object.status, ...conditionsOf(object, [this.#ready(object)], now) }
    if (!same(object, status)) await written(store.applyStatus(object.kind, object.metadata, status))
  }

  async #writeAgent(store: Pick<ResourceStore, 'applyStatus'>, agent: Resource<'Agent'>, now: string): Promise<void> {
    const findings = [this.#ready(agent), this.#sovereignAgent(agent), toolsFinding(agent, this.#tiers)]
    const activeSessions = this.#activeSessions?.get(keyOf(agent)) ?? 0
    const status = {
      ...agent.status,
      ...(this.#activeSessions !== null && { activeSessions }),
      ...conditionsOf(agent, findings, now),
    }
    if (!same(agent, status)) await written(store.applyStatus('Agent', agent.metadata, status))
  }

  async #writeServer(
    store: Pick<ResourceStore, 'applyStatus'>,
    server: Resource<'MCPServer'>,
    now: string,
  ): Promise<void> {
    const off = pinsOf(server, this.#policyPins.get(keyOf(server)) ?? []) === null
    const report = off ? null : this.#pinReport(server)
    const ready = this.#ready(server)
    const sovereign = sovereignFinding(
      this.#sovereignty,
      reliedOnByServer(server, { endpoints: this.#endpoints }),
      server.status,
    )
    const { gatewayKey: _, ...before } = server.status ?? {}
    const status = {
      ...before,
      ...observed(before, report),
      ...(ready.status === 'True' && { gatewayKey: keyOf(server) }),
      ...conditionsOf(server, [ready, pinnedFinding(report, off), sovereign, this.#runs(server)], now),
    }
    if (!same(server, status)) await written(store.applyStatus('MCPServer', server.metadata, status))
  }

  /** Null: it does not run here, and never did. */
  #runs(server: Resource<'MCPServer'>): Finding | null {
    const finding = this.#running(server)
    if (finding !== null) return finding
    const isReported = server.status?.conditions?.some(({ type }) => type === 'Running') === true
    return isReported ? { type: 'Running', status: 'False', reason: 'NotRun', message: 'it is not run here' } : null
  }

  #sovereignAgent(agent: Resource<'Agent'>): Finding | null {
    return sovereignFinding(
      this.#sovereignty,
      reliedOnByAgent(agent, { servers: this.#servers, tiers: this.#tiers, endpoints: this.#endpoints }),
      agent.status,
    )
  }

  /** In force, or why not. */
  #ready(object: Resource): Finding {
    const why = this.#refused.get(`${object.kind} ${keyOf(object)}`) ?? []
    if (why.length > 0) return { type: 'Ready', status: 'False', reason: 'Refused', message: why.join('; ') }
    return { type: 'Ready', status: 'True', reason: 'InForce', message: '' }
  }
}

/** Whether the TrustTier lets an Agent have every provider-hosted tool that it lists (docs/spec/crds.md). */
function toolsFinding(agent: Resource<'Agent'>, tiers: ReturnType<typeof tiersByName>): Finding | null {
  const type = 'ProviderToolsAllowed'
  const dropped = droppedTools(agent, tiers)
  if (dropped.length > 0) {
    const message = `the TrustTier ${tierOfAgent(agent.spec)} does not allow ${dropped.join(', ')}`
    return { type, status: 'False', reason: 'Dropped', message }
  }
  const isReported = agent.status?.conditions?.some((condition) => condition.type === type) === true
  return isReported ? { type, status: 'True', reason: 'Allowed', message: '' } : null
}

function isServer(object: Resource): object is Resource<'MCPServer'> {
  return object.kind === 'MCPServer'
}

function isAgent(object: Resource): object is Resource<'Agent'> {
  return object.kind === 'Agent'
}

/** Null: nothing is said of a condition, and what was said before stays. */
function conditionsOf(object: Resource, all: readonly (Finding | null)[], now: string) {
  const { generation } = object.metadata
  const before: readonly Condition[] = object.status?.conditions ?? []
  const findings = all.filter((finding) => finding !== null)
  return { conditions: withFindings(before, findings, { generation, now }), observedGeneration: generation }
}

function same(object: Resource, status: object): boolean {
  return canonicalJson(object.status ?? {}) === canonicalJson(status)
}

async function written(applying: Promise<Applied<Kind> | null>): Promise<void> {
  const applied = await applying
  if (applied?.kind === 'invalid')
    throw new Error(applied.problems.map(({ path, message }) => `${path}: ${message}`).join('; '))
  if (applied?.kind === 'conflict') throw new Error(applied.reason)
}
