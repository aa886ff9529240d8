import type { Ids } from '@plat/core'
import { type KubernetesApi, type Members, member, textOf } from '@plat/kubernetes'
import { isTerminal, type Kind, type Resource, tierOfAgent } from '@plat/resources'
import { Controller } from '../controllers/controller.ts'
import { keyOf } from '../render/declared.ts'
import { renderRevocations } from '../render/limits/revocations.ts'
import { type Foreign, SessionObjects } from './cluster.ts'
import { KnownSessions } from './known.ts'
import { TIER, WarmPools } from './pools.ts'
import { SessionReconciler, type SharedParts, tierOf } from './reconcile.ts'
import type { Releaser } from './releases.ts'
import { RevocationIndex } from './revoked.ts'
import { SessionReleases } from './session-releases.ts'

/** Sessions that are worked on at the same time, beside those that are to end. */
const SESSION_WORKERS = 4

export interface SessionsParts extends SharedParts {
  readonly api: KubernetesApi
  readonly foreign: Foreign
  /** Null: releases of attested sessions are created by others. */
  readonly releaser: Releaser | null
  /** The operator's own namespace. */
  readonly namespace: string
  readonly ids: Pick<Ids, 'random'>
}

/** Session controllers of a leader: create sandboxes for AgentSessions, and maintain warm pools. */
export class Sessions {
  readonly #parts: SessionsParts
  readonly #known: KnownSessions
  readonly #objects: SessionObjects
  readonly #pools: WarmPools
  readonly #sessionWork: Controller
  readonly #poolWork: Controller
  /** By `<namespace>/<name>` of an Agent: its TrustTier. */
  readonly #tiers = new Map<string, string>()
  #revocations: RevocationIndex
  /** Reported series of `plat_sessions` and `plat_warm_pool_ready`: those without objects are set to 0. */
  readonly #waiting = new Map<string, () => void>()

  constructor(parts: SessionsParts) {
    const { mirror, foreign, registry, clock, ids, log } = parts
    this.#parts = parts
    this.#known = new KnownSessions(mirror)
    this.#revocations = this.#indexed()
    for (const agent of mirror.list('Agent')) this.#tiers.set(keyOf(agent), tierOfAgent(agent.spec))
    this.#objects = new SessionObjects(parts.api, foreign, {
      home: parts.namespace,
      gatewayLabels: parts.settings.gatewayLabels,
    })
    this.#pools = new WarmPools({ api: parts.api, mirror, pools: foreign.pools })
    const reconciler = new SessionReconciler({
      ...parts,
      known: this.#known,
      objects: this.#objects,
      releases: new SessionReleases({ ...parts, objects: this.#objects }),
      home: parts.namespace,
      revocations: () => this.#revocations,
      served: () => foreign.sandboxes.known,
      snapshotsServed: () => foreign.snapshots.known,
      onRoom: (agents) => this.#admit(agents),
    })
    const common = { registry, clock, ids, log }
    this.#sessionWork = new Controller({
      ...common,
      name: 'agentsession',
      reconcile: (key, signal) => reconciler.reconcile(key, signal),
      workers: SESSION_WORKERS,
      isUrgent: (key) => this.#isToEnd(key),
    })
    this.#poolWork = new Controller({
      ...common,
      name: 'warmpool',
      reconcile: (key, signal) => this.#pools.reconcile(key, signal),
    })
    for (const session of mirror.list('AgentSession')) this.#sessionWork.queue.add(keyOf(session))
    for (const tier of mirror.list('TrustTier')) this.#poolWork.queue.add(tier.metadata.name)
  }

  /** Works until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#sessionWork.run(signal), this.#poolWork.run(signal)])
    for (const silence of this.#waiting.values()) silence()
  }

  /** Resources have changed. */
  changed(kind: Kind, keys: readonly string[]): void {
    if (kind === 'AgentSession') for (const key of keys) this.#sessionChanged(key)
    if (kind === 'Agent') for (const key of keys) this.#agentChanged(key)
    if (kind === 'AgentRevocation') {
      const before = this.#revocations
      this.#revocations = this.#indexed()
      this.#again(this.#revocations.differenceTo(before))
    }
    if (kind === 'TrustTier') {
      const tiers = new Set(keys)
      for (const key of tiers) this.#poolWork.queue.add(key)
      this.#again((session) => tiers.has(tierOf(this.#parts.mirror, session)))
    }
  }

  /** Whether a session had begun when it was last written here. */
  hadBegun(key: string): boolean {
    return this.#known.hadBegun(key)
  }

  /** Sandboxes, claims or snapshots have changed. */
  foreignChanged(objects: readonly Members[]): void {
    for (const object of objects) {
      const key = this.#objects.sessionKeyOf(object)
      if (key !== null) this.#sessionWork.queue.add(key)
    }
  }

  poolsChanged(objects: readonly Members[]): void {
    for (const object of objects) {
      const tier = textOf(member(member(object, 'metadata'), 'labels'), TIER)
      if (tier !== '') this.#poolWork.queue.add(tier)
    }
  }

  /** The cluster serves a kind of agent-sandbox that it did not serve before. */
  served(): void {
    this.#again(() => true)
    for (const tier of this.#parts.mirror.list('TrustTier')) this.#poolWork.queue.add(tier.metadata.name)
  }

  /** Brings the gauges up to date. */
  measure(): void {
    const { registry, mirror } = this.#parts
    const counts = new Map<string, { labels: { namespace: string; tier: string; phase: Phase }; count: number }>()
    for (const session of this.#known.list()) {
      const phase = session.status?.phase ?? 'Pending'
      const labels = { namespace: session.metadata.namespace, tier: tierOf(mirror, session), phase }
      const key = JSON.stringify(labels)
      counts.set(key, { labels, count: (counts.get(key)?.count ?? 0) + 1 })
    }
    for (const silence of this.#waiting.values()) silence()
    this.#waiting.clear()
    for (const [key, { labels, count }] of counts) {
      registry.gauge('plat_sessions').set(labels, count)
      this.#waiting.set(key, () => registry.gauge('plat_sessions').set(labels, 0))
    }
    for (const [tier, ready] of this.#pools.ready()) {
      registry.gauge('plat_warm_pool_ready').set({ tier }, ready)
    }
  }

  /** Is the session to end or to be suspended, or gone? That never waits behind tokens that are minted. */
  #isToEnd(key: string): boolean {
    const session = this.#known.get(key)
    if (session === undefined) return true
    const { spec, status } = session
    if (isTerminal(status?.phase)) return false
    const now = this.#parts.clock.now()
    if (spec.cancel === true || spec.suspend === true || Date.parse(status?.expiresAt ?? '') <= now) return true
    return this.#revocations.of(session, now).how !== null
  }

  #sessionChanged(key: string): void {
    this.#admit(this.#known.see(key))
    this.#sessionWork.queue.add(key)
  }

  #agentChanged(key: string): void {
    for (const session of this.#known.liveOf(key)) this.#sessionWork.queue.add(session)
    const before = this.#tiers.get(key)
    const agent = this.#parts.mirror.find('Agent', key)
    const now = agent === undefined ? undefined : tierOfAgent(agent.spec)
    if (before === now) return
    if (now === undefined) this.#tiers.delete(key)
    else this.#tiers.set(key, now)
    for (const tier of [before, now]) if (tier !== undefined) this.#poolWork.queue.add(tier)
  }

  /** Looks again at the sessions of these Agents that wait and have room. */
  #admit(agents: readonly string[]): void {
    for (const agent of agents) {
      const max = this.#parts.mirror.find('Agent', agent)?.spec.maxConcurrentSessions ?? 0
      for (const key of this.#known.admissible(agent, max)) this.#sessionWork.queue.add(key)
    }
  }

  /** Looks again at the sessions that have not ended and that `may` selects. */
  #again(may: (session: Resource<'AgentSession'>) => boolean): void {
    for (const key of this.#known.live()) {
      const session = this.#known.get(key)
      if (session !== undefined && may(session)) this.#sessionWork.queue.add(key)
    }
  }

  #indexed(): RevocationIndex {
    const { mirror, namespace } = this.#parts
    return new RevocationIndex(renderRevocations(mirror.list('AgentRevocation'), namespace).file.revocations)
  }
}

type Phase = NonNullable<NonNullable<Resource<'AgentSession'>['status']>['phase']>
