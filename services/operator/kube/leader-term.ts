import { type Clock, type Ids, rfc3339 } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Members } from '@plat/kubernetes'
import type { Resource, ResourceStore } from '@plat/resources'
import type { EndpointJurisdictions } from '@plat/resources/regions/endpoint'
import { Controller, type OperatorRegistry, type Reconcile } from '../controllers/controller.ts'
import type { ControllerName } from '../metrics.ts'
import { Apis } from '../openapi/apis.ts'
import { keyOf, objectKey } from '../render/declared.ts'
import { EndedSessions } from '../render/limits/ended.ts'
import { Sessions, type SessionsParts } from '../sessions/sessions.ts'
import { Statuses } from '../status/status.ts'
import { StdioServers, type StdioWatches } from '../stdio/servers.ts'
import { concernedBy, type RenderedKind } from './concerns.ts'
import { FOLLOWED, type Followed } from './mirror.ts'
import { pinReportOf } from './pin-report.ts'
import { ReferencedObjects } from './referenced.ts'
import {
  createRefresh,
  createRender,
  EVERYTHING,
  REFERENCES,
  REVOCATIONS,
  type Rendering,
  type RenderParts,
} from './render.ts'
import { createRevocations, type WrittenRevocations } from './revocations.ts'
import { SessionCounts } from './session-counts.ts'

/** How long changes gather before everything is rendered, in milliseconds: people apply folders, not files. */
const GATHER_MS = 200
/** How long AgentRevocations gather before they are written, in milliseconds. */
const REVOKE_GATHER_MS = 20
/** One for revocations, one for everything else and one for what resources name: none waits for another. */
const RENDER_WORKERS = 3

/** Which controller keeps the status of a kind. */
const STATUS_CONTROLLERS = {
  Agent: 'agent',
  MCPServer: 'mcpserver',
  ToolPolicy: 'toolpolicy',
  BudgetPolicy: 'budgetpolicy',
  MemoryStore: 'memorystore',
  SovereigntyPolicy: 'sovereigntypolicy',
  TrustTier: 'trusttier',
  AgentRevocation: 'agentrevocation',
} as const satisfies Record<RenderedKind, ControllerName>

const RENDERED: readonly RenderedKind[] = FOLLOWED.filter((kind) => kind !== 'AgentSession')

/** Settings and resources of sandboxes. */
export type Sandboxes = Pick<SessionsParts, 'foreign' | 'minter' | 'releaser' | 'settings'>

export interface TermParts extends Omit<RenderParts, 'onRendered' | 'monotonic' | 'references' | 'apis'> {
  readonly statusStore: Pick<ResourceStore, 'applyStatus'>
  readonly registry: OperatorRegistry
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  /** `endpointJurisdictions` of the gateway. */
  readonly endpoints: EndpointJurisdictions
  /** Null if no sandboxes are created for AgentSessions. */
  readonly sandboxes: Sandboxes | null
  /** Objects of stdio servers; null if `stdio` is null. */
  readonly stdioWatches: StdioWatches | null
}

/** The work of one leader: renders resources, then writes the status of each object. */
export class LeaderTerm {
  readonly #parts: TermParts
  readonly #apis: Apis
  readonly #render: Controller
  readonly #statuses: Readonly<Record<RenderedKind, Controller>>
  readonly #sessions: Sessions | null
  /** Null if stdio servers do not run here. */
  readonly #stdioServers: StdioServers | null
  readonly #ended = new EndedSessions()
  readonly #sessionCounts = new SessionCounts()
  /** Objects whose status may not be right any more, until the next rendering, by kind. */
  readonly #touched = new Map<RenderedKind, Set<string>>()
  #rendering: Rendering | null = null
  #revocations: WrittenRevocations | null = null
  /** Made from the last rendering when it is first needed. */
  #reported: Statuses | null = null
  /** Likewise, from the revocations that were last written. */
  #saidOfRevocations: Statuses | null = null

  constructor(parts: TermParts) {
    this.#parts = parts
    const references = {
      secrets: new ReferencedObjects({ api: parts.api, plural: 'secrets' }),
      configMaps: new ReferencedObjects({ api: parts.api, plural: 'configmaps' }),
    }
    const { dialer, clock, log } = parts
    this.#apis = new Apis({ dialer, clock, log, onChange: () => this.#render.queue.addAfter(EVERYTHING, GATHER_MS) })
    const render = createRender({
      ...parts,
      references,
      apis: this.#apis,
      monotonic: () => parts.clock.monotonic(),
      onRendered: (rendering) => this.#rendered(rendering),
    })
    const revocations = createRevocations({
      ...parts,
      ended: () => this.#ended.entries(parts.clock.now()),
      now: () => parts.clock.now(),
      onWritten: (written) => this.#revocationsWritten(written),
    })
    const refresh = createRefresh(references, () => this.#render.queue.add(EVERYTHING))
    const work = new Map([
      [EVERYTHING, render],
      [REVOCATIONS, revocations],
      [REFERENCES, refresh],
    ])
    this.#render = this.#controller(
      'render',
      async (key, signal) => (await work.get(key)?.(key, signal)) ?? {},
      RENDER_WORKERS,
    )
    const status = (kind: RenderedKind) =>
      this.#controller(STATUS_CONTROLLERS[kind], (key) => this.#writeStatus(kind, key))
    this.#statuses = {
      Agent: status('Agent'),
      MCPServer: status('MCPServer'),
      ToolPolicy: status('ToolPolicy'),
      BudgetPolicy: status('BudgetPolicy'),
      MemoryStore: status('MemoryStore'),
      SovereigntyPolicy: status('SovereigntyPolicy'),
      TrustTier: status('TrustTier'),
      AgentRevocation: status('AgentRevocation'),
    }
    const endedIn = (namespace: string) => this.#ended.countOf(namespace)
    this.#sessions = parts.sandboxes === null ? null : new Sessions({ ...parts, ...parts.sandboxes, endedIn })
    const onChange = (key: string) => this.#statuses.MCPServer.queue.add(key)
    const watches = parts.stdioWatches
    this.#stdioServers = watches === null ? null : new StdioServers({ ...parts, watches, onChange })
    for (const kind of RENDERED) this.#touch(kind, () => true)
    const sessions = parts.mirror.list('AgentSession')
    for (const session of sessions) this.#sessionCounts.see(keyOf(session), session)
    this.#seeSessions(sessions.map(keyOf))
    this.#render.queue.add(REVOCATIONS)
    this.#render.queue.add(EVERYTHING)
    this.#render.queue.add(REFERENCES)
  }

  /** Works until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const controllers = [this.#render, ...Object.values(this.#statuses)]
    const running = controllers.map((controller) => controller.run(signal))
    await Promise.all([...running, this.#sessions?.run(signal), this.#stdioServers?.run(signal)])
    this.#apis.close()
  }

  /** Objects of a kind have changed. What is rendered already may need its status anew, and nothing else. */
  changed(kind: Followed, keys: readonly string[]): void {
    this.#sessions?.changed(kind, keys)
    if (kind === 'AgentSession') {
      this.#sessionsChanged(keys)
      if (this.#seeSessions(keys)) this.#render.queue.addAfter(REVOCATIONS, REVOKE_GATHER_MS)
      return
    }
    const fresh: string[] = []
    for (const key of keys) {
      if (this.#isRendered(kind, key)) this.#statuses[kind].queue.add(key)
      else fresh.push(key)
    }
    if (fresh.length === 0) return
    const touched = this.#touchedOf(kind)
    for (const key of fresh) touched.add(key)
    const { mirror } = this.#parts
    const objects = fresh.flatMap((key) => [this.#renderedObject(kind, key) ?? [], mirror.get(kind, key) ?? []].flat())
    const hasSovereignty = mirror.list('SovereigntyPolicy').length > 0
    for (const { kind: other, includes } of concernedBy(kind, fresh, { objects, hasSovereignty }))
      this.#touch(other, includes)
    if (kind === 'AgentRevocation') this.#render.queue.addAfter(REVOCATIONS, REVOKE_GATHER_MS)
    else this.#render.queue.addAfter(EVERYTHING, GATHER_MS)
  }

  /** Sandboxes or claims have changed. */
  foreignChanged(objects: readonly Members[]): void {
    this.#sessions?.foreignChanged(objects)
  }

  /** Objects of stdio servers have changed. */
  stdioChanged(objects: readonly Members[]): void {
    this.#stdioServers?.changed(objects)
  }

  poolsChanged(objects: readonly Members[]): void {
    this.#sessions?.poolsChanged(objects)
  }

  /** The cluster serves a kind of agent-sandbox that it did not serve before. */
  served(): void {
    this.#sessions?.served()
  }

  /** Brings gauges up to date that are read of what is there. */
  measure(): void {
    this.#sessions?.measure()
  }

  /** Returns whether the revocations of ended sessions have changed since. */
  #seeSessions(keys: readonly string[]): boolean {
    const { mirror, clock } = this.#parts
    const find = (key: string) => mirror.find('AgentSession', key)
    const hadBegun = (key: string) => this.#sessions?.hadBegun(key) === true
    return this.#ended.see(keys, { find, hadBegun }, clock.now())
  }

  /** Agents say how many sessions they have. */
  #sessionsChanged(keys: readonly string[]): void {
    for (const key of keys) {
      const agents = this.#sessionCounts.see(key, this.#parts.mirror.find('AgentSession', key))
      for (const agent of agents) this.#statuses.Agent.queue.add(agent)
    }
  }

  /** Is the object, as it is declared now, part of what was last rendered and written? */
  #isRendered(kind: RenderedKind, key: string): boolean {
    const now = this.#parts.mirror.get(kind, key)?.metadata
    const then = this.#renderedObject(kind, key)?.metadata
    return now !== undefined && now.uid === then?.uid && now.generation === then.generation
  }

  #renderedObject(kind: RenderedKind, key: string): Resource | undefined {
    if (kind === 'AgentRevocation') return this.#revocations?.objects.get(key)
    const rendering = this.#rendering
    return rendering?.unwritten.has(kind) === false ? rendering.objects.get(objectKey(kind, key)) : undefined
  }

  #controller(name: ControllerName, reconcile: Reconcile, workers = 1): Controller {
    const { registry, clock, ids, log } = this.#parts
    return new Controller({ name, reconcile, registry, clock, ids, log, workers })
  }

  #touchedOf(kind: RenderedKind): Set<string> {
    const known = this.#touched.get(kind) ?? new Set()
    this.#touched.set(kind, known)
    return known
  }

  #touch(kind: RenderedKind, includes: (object: Resource) => boolean): void {
    const touched = this.#touchedOf(kind)
    for (const object of this.#parts.mirror.list(kind)) if (includes(object)) touched.add(keyOf(object))
  }

  /** Statuses are written of what is rendered, never before it. */
  #rendered(rendering: Rendering): void {
    this.#touchLines(this.#rendering?.refused ?? [], rendering.refused)
    this.#rendering = rendering
    this.#reported = null
    if (rendering.workloads !== null) this.#stdioServers?.rendered(rendering.workloads)
    for (const kind of RENDERED)
      if (kind !== 'AgentRevocation' && !rendering.unwritten.has(kind)) this.#writeTouched(kind)
  }

  #revocationsWritten(revocations: WrittenRevocations): void {
    this.#touchLines(this.#revocations?.refused ?? [], revocations.refused)
    this.#revocations = revocations
    this.#saidOfRevocations = null
    this.#writeTouched('AgentRevocation')
  }

  /** Logs resources that are newly refused, or no longer refused. */
  #touchLines(before: readonly string[], after: readonly string[]): void {
    for (const line of changedLines(before, after)) {
      const [kind, key] = line.split(' ', 2)
      for (const known of RENDERED) if (known === kind && key !== undefined) this.#touchedOf(known).add(key)
    }
  }

  #writeTouched(kind: RenderedKind): void {
    for (const key of this.#touchedOf(kind)) this.#statuses[kind].queue.add(key)
    this.#touched.delete(kind)
  }

  async #writeStatus(kind: RenderedKind, key: string): Promise<Record<string, never>> {
    const { mirror, statusStore, clock } = this.#parts
    const object = mirror.get(kind, key)
    if (object === undefined) return {}
    if (!this.#isRendered(kind, key)) {
      // It has changed since, and comes again with its own rendering.
      this.#touchedOf(kind).add(key)
      return {}
    }
    const statuses = kind === 'AgentRevocation' ? this.#statusesOfRevocations() : this.#statusesNow()
    await statuses.write(statusStore, object, rfc3339(clock.now()))
    return {}
  }

  #statusesNow(): Statuses {
    const { servers = [], policies = [], sovereignty = [], tiers = [], refused = [] } = this.#rendering ?? {}
    const activeSessions = this.#sessionCounts.active
    this.#reported ??= new Statuses({
      servers,
      policies,
      sovereignty,
      tiers,
      endpoints: this.#parts.endpoints,
      refused,
      activeSessions,
      pinReport: pinReportOf,
      running: (server) => this.#stdioServers?.running(server) ?? null,
    })
    return this.#reported
  }

  #statusesOfRevocations(): Statuses {
    const refused = this.#revocations?.refused ?? []
    const none = {
      servers: [],
      policies: [],
      sovereignty: [],
      tiers: [],
      endpoints: {},
      activeSessions: null,
      pinReport: () => null,
      running: () => null,
    }
    this.#saidOfRevocations ??= new Statuses({ ...none, refused })
    return this.#saidOfRevocations
  }
}

/** Lines that one of two lists has and the other has not. */
function changedLines(before: readonly string[], after: readonly string[]): readonly string[] {
  const old = new Set(before)
  const now = new Set(after)
  return [...before.filter((line) => !now.has(line)), ...after.filter((line) => !old.has(line))]
}
