import { followFile } from '@plat/config'
import { type Clock, type PoolObservers, withoutTrailing } from '@plat/core'
import type { Dialer, Exchange, RawRoute } from '@plat/http'
import type { Log } from '@plat/process'
import type { Journals } from '@plat/state'
import type { LookUps } from '../../call/bindings/look-ups.ts'
import type { Call, Denial, Identity, Snapshot, Snapshots } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Review, Stage } from '../../pipeline/stage.ts'
import { type CardRequest, type CardResponse, Cards } from './card/cards.ts'
import { RemoteCards } from './card/remote.ts'
import { type CardKeys, openCardSigner } from './card/sign.ts'
import type { A2aConfig } from './config.ts'
import { decodeAgents } from './decode.ts'
import { CalleeTaints, type SessionLabels } from './labels.ts'
import { type OpenedOwners, openOwners } from './owners.ts'
import { createPushRule } from './push.ts'
import { buildAgents, type ExposedAgent } from './registry.ts'
import { createAgentRoute } from './route.ts'
import { agentsSlot, createAgentResolve, type NamedIn } from './stage.ts'

export type { ExposedAgent } from './registry.ts'

export interface AgentsOptions {
  readonly config: {
    readonly a2a: A2aConfig
    readonly auditPath: string
    readonly policyReloadSeconds: number
    readonly tls: { readonly certFile: string }
  }
  readonly journals: Journals
  /** Tasks, contexts and webhooks named in a request, as parsed by its plane. */
  readonly namedIn: (call: Call) => NamedIn
  readonly labels: SessionLabels
  readonly snapshots: Snapshots
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly extraCA: string | null
  readonly clock: Clock
  readonly log: Log
  /** Pools of tasks and contexts. */
  readonly pools?: PoolObservers<'task_bindings'>
  /** Default: no other replica creates tasks. */
  readonly lookUps?: Pick<LookUps, 'catchUpFor'>
  readonly metrics: GatewayMetrics
  /** Default: keys in files only. */
  readonly keys?: CardKeys
  /** Whether a caller may call agents of a namespace, exposed or not; absent: always. */
  readonly mayCall?: (caller: Identity, namespace: string) => boolean
}

/** Agents that call one another through the gateway (docs/spec/gateway.md, `a2a`; docs/spec/crds.md, `Agent.spec.a2a`). */
export interface AgentsFeature {
  readonly stage: Stage<'resolve', 'identity', 'target'>
  /** Labels callers with the taint labels of the responding sessions. */
  readonly review: Review<'identity' | 'target'>
  /** Owners and senders of tasks and contexts. */
  readonly owners: Pick<OpenedOwners['owners'], 'owns' | 'callOf' | 'bind'> & Pick<CalleeTaints, 'note' | 'sendersOf'>
  /** Exposed agents in force. */
  listed(): readonly ExposedAgent[]
  /** Looks up `a2a/<ns>/<agent>`; null if it is not in the snapshot. */
  agent(snapshot: Snapshot, server: string): ExposedAgent | null
  card(agent: ExposedAgent, request: CardRequest): Promise<CardResponse | Denial>
  /** Route for `/a2a/`, before the plane; null without a routes file. */
  route(governed: (exchange: Exchange) => void): RawRoute | null
  /** Reads the routes file; first called before the gateway serves. */
  check(): Promise<void>
  close(): Promise<void>
}

/**
 * Rejects if the signing key or the journal of owners cannot be used. An invalid routes file leaves the previous one in force; without
 * any no agent is known.
 */
export async function createAgents(options: AgentsOptions): Promise<AgentsFeature> {
  const { config, snapshots, log, metrics } = options
  const calls = metrics.counter('plat_gateway_a2a_calls_total')
  const { a2a } = config
  const isOn = a2a.routesFile !== ''
  const signer = a2a.cardSigningKey === '' ? null : await openCardSigner(a2a.cardSigningKey, options.keys)
  const { owners, close: closeOwners } = await openOwners(options)
  const cards = new Cards({
    remote: new RemoteCards({ ...options, cacheMs: a2a.cardCacheSeconds * 1000 }),
    ...{ signer, log },
    publicURL: a2a.publicURL === '' ? null : withoutTrailing(a2a.publicURL, '/'),
    scheme: config.tls.certFile === '' ? 'http' : 'https',
    pushes: a2a.pushNotificationHosts.length > 0,
    isPublic: a2a.publicCards,
    cacheSeconds: a2a.cardCacheSeconds,
  })
  const { labels, namedIn } = options
  const callees = new CalleeTaints({ labels, bindings: owners, namedIn })
  const watch = isOn ? followRoutes(options) : null
  if (isOn) metrics.gauge('plat_gateway_a2a_routes').set({}, 0)
  return {
    stage: createAgentResolve({
      snapshots,
      namedIn,
      mayCall: options.mayCall ?? (() => true),
      owns: (identity, server, kind, id) => owners.owns(identity, server, kind, id),
      refusalFor: (identity) => owners.refusalFor(identity),
      catchUp: (identity) => options.lookUps?.catchUpFor(identity) ?? null,
      pushRule: createPushRule(a2a.pushNotificationHosts),
      maxDelegationDepth: a2a.maxDelegationDepth,
      count: (hop, kind, decision) => calls.inc({ hop, kind, decision }),
    }),
    review: callees.review,
    owners: {
      owns: (identity, server, kind, id) => owners.owns(identity, server, kind, id),
      callOf: (server, kind, id) => owners.callOf(server, kind, id),
      bind: (bringing, kind, id) => owners.bind(bringing, kind, id),
      note: (call) => callees.note(call),
      sendersOf: (call) => callees.sendersOf(call),
    },
    agent: (snapshot, server) => snapshot.get(agentsSlot).agent(server),
    listed: () => snapshots.current.get(agentsSlot).listed,
    card: (agent, request) => cards.answer(agent, request),
    route: (governed) => (isOn ? createAgentRoute({ cards, snapshots, publicCards: a2a.publicCards }, governed) : null),
    async check() {
      await watch?.check()
    },
    async close() {
      watch?.stop()
      await closeOwners()
    },
  }
}

function followRoutes({ config, snapshots, clock, log, metrics }: AgentsOptions) {
  const path = config.a2a.routesFile
  const refuse = (problems: readonly string[]) =>
    log.error({ path, problems }, 'a2a.routesFile is refused: the agents loaded before stay in use')
  return followFile({
    path,
    everySeconds: config.policyReloadSeconds,
    clock,
    decode: (bytes) => (bytes === null ? { file: null } : decodeAgents(bytes)),
    publish({ file }: { readonly file: Parameters<typeof buildAgents>[0] }) {
      const agents = buildAgents(file)
      snapshots.publish(agentsSlot, agents)
      metrics.gauge('plat_gateway_a2a_routes').set({}, agents.size)
      log.info({ path, agents: agents.size }, 'agents loaded')
    },
    refuse,
  })
}
