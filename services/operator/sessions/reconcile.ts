import { type Clock, reasonOf } from '@plat/core'
import type { Members } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import { isTerminal, type Resource, type ResourceStore, type StatusOf, tierOfAgent } from '@plat/resources'
import { type OperatorRegistry, ReconcileError } from '../controllers/controller.ts'
import type { Mirror } from '../kube/mirror.ts'
import { type SessionObjects, viewOf } from './cluster.ts'
import type { KnownSessions } from './known.ts'
import { admit, isPlan, type Plan, tooManyEnded } from './life/admission.ts'
import type { Hindrance } from './life/hindrance.ts'
import { decide } from './life/phase.ts'
import { endOf, idleMsOf, LAST_ACTIVITY, timeOf } from './life/times.ts'
import type { SnapshotView } from './life/workspace.ts'
import { type Minted, type Minter, TOKEN_SECONDS } from './mint.ts'
import { hasToken } from './pod/pod.ts'
import { heldTokenOf, poolName, sandboxOf, tokenSecret } from './pod/sandbox.ts'
import type { RevocationIndex } from './revoked.ts'
import type { SessionReleases } from './session-releases.ts'
import type { SandboxSettings } from './settings.ts'
import { isNews, type StatusParts, statusOf } from './status.ts'

type Session = Resource<'AgentSession'>

/** A token is minted anew when this share of its life is over. */
const REFRESH_AT = 2 / 3

export interface SharedParts {
  readonly mirror: Mirror
  readonly minter: Minter
  readonly statusStore: Pick<ResourceStore, 'applyStatus'>
  readonly settings: SandboxSettings
  readonly currency: string
  /** How many sessions of a namespace have ended while a token of theirs may be valid. */
  readonly endedIn: (namespace: string) => number
  readonly registry: OperatorRegistry
  readonly clock: Clock
  readonly log: Log
}

interface ReconcileParts extends SharedParts {
  readonly known: KnownSessions
  readonly objects: SessionObjects
  readonly releases: SessionReleases
  /** The operator's own namespace. */
  readonly home: string
  /** AgentRevocations as they are now. */
  readonly revocations: () => RevocationIndex
  /** Does the cluster know Sandboxes? */
  readonly served: () => boolean
  /** Does the cluster know VolumeSnapshots? */
  readonly snapshotsServed: () => boolean
  /** Sessions of these Agents (`<namespace>/<name>`) that wait may have room since. */
  readonly onRoom: (agents: readonly string[]) => void
}

/** The observed state of a session. */
interface SessionView extends Omit<StatusParts, 'plan' | 'minted' | 'release'> {
  readonly plan: Plan | Hindrance
  readonly raw: Members | null
  /** When a revocation that is in force ends. */
  readonly revokedUntil: number | null
}

/** Brings one session, its Sandbox and its token to where they shall be. */
export class SessionReconciler {
  readonly #parts: ReconcileParts
  /** By UID of the session: when its token is to be minted anew, in milliseconds since the epoch. Absent: not known since this leader began. */
  readonly #tokens = new Map<string, number>()
  /** The last known state of sessions by `<namespace>/<name>`, to report how deleted ones ended. */
  readonly #last = new Map<string, Session>()

  constructor(parts: ReconcileParts) {
    this.#parts = parts
  }

  async reconcile(key: string, signal: AbortSignal): Promise<{ readonly requeueAfterMs?: number }> {
    const session = this.#parts.known.get(key)
    if (session === undefined) return this.#gone(key)
    this.#last.set(key, session)
    if (isTerminal(session.status?.phase)) {
      // Leftovers of an end, such as a Sandbox that was created at the same time.
      await this.#parts.objects.remove(session, signal)
      return {}
    }
    const look = await this.#look(session, signal)
    const { failure, ...done } = await this.#act(look, signal)
    await this.#writeStatus(key, failure === null ? look : withFailure(look, failure), done)
    if (failure !== null) throw failure.error
    if (look.decision.begins) return { requeueAfterMs: 0 }
    const refreshAt = look.decision.sandbox === 'running' ? (this.#tokens.get(session.metadata.uid) ?? null) : null
    const wakes = [look.decision.wakeAt, look.revokedUntil, refreshAt].filter((at) => at !== null)
    return wakes.length === 0 ? {} : { requeueAfterMs: Math.max(0, Math.min(...wakes) - look.now) }
  }

  async #look(session: Session, signal: AbortSignal): Promise<SessionView> {
    const { mirror, objects, clock, revocations } = this.#parts
    const now = clock.now()
    const plan = await this.#plan(session, signal)
    const agent = mirror.find('Agent', `${session.metadata.namespace}/${session.spec.agentRef}`)
    const tier = agent === undefined ? undefined : mirror.find('TrustTier', tierOfAgent(agent.spec))
    const raw = objects.sandboxOf(session)
    const sandbox = viewOf(raw)
    const startedAt = timeOf(session.status?.startedAt) ?? now
    const caps = { ...(agent !== undefined && { agent: agent.spec }), ...(tier !== undefined && { tier: tier.spec }) }
    const endsAt = endOf(startedAt, { session, ...caps })
    const lastActivity = timeOf(session.metadata.annotations?.[LAST_ACTIVITY])
    const revoked = revocations().of(session, now)
    const decision = decide({
      ...{ session, now, sandbox, endsAt, lastActivity, revoked: revoked.how },
      hindrance: isPlan(plan) ? null : plan,
      room: this.#parts.known.hasRoom(session, agent?.spec.maxConcurrentSessions ?? 0),
      idleMs: agent === undefined ? null : idleMsOf(agent.spec),
    })
    return { session, now, plan, raw, sandbox, endsAt, lastActivity, decision, revokedUntil: revoked.until }
  }

  async #plan(session: Session, signal: AbortSignal): Promise<Plan | Hindrance> {
    const { mirror, known, objects, settings, currency, home, served, snapshotsServed, endedIn } = this.#parts
    if (!served())
      return { reason: 'SandboxesNotServed', message: 'the cluster does not know Sandboxes: install agent-sandbox' }
    const { namespace } = session.metadata
    const full = session.status?.startedAt === undefined ? tooManyEnded(endedIn(namespace)) : null
    if (full !== null) return full
    const agent = mirror.find('Agent', `${namespace}/${session.spec.agentRef}`)
    const tier = agent === undefined ? undefined : mirror.find('TrustTier', tierOfAgent(agent.spec))
    // How a session that has begun comes to its pod is decided.
    const warm = session.status?.mode !== undefined ? undefined : tier?.spec.warmPool
    const template = warm === undefined ? null : await objects.template(namespace, warm.template, signal)
    const parent = known.get(`${namespace}/${session.spec.fork?.parent ?? ''}`)
    return admit({
      ...{ session, parent, agent, tier, template, settings, currency, home },
      parentClaim: parent === undefined ? null : objects.workspaceClaimOf(parent),
      snapshot: objects.snapshotOf(session),
      snapshotsServed: snapshotsServed(),
    })
  }

  /** Creates, stops and deletes. Failures are reported and retried. */
  async #act(look: SessionView, signal: AbortSignal): Promise<Done & { readonly failure: Failure | null }> {
    const { session, decision, raw } = look
    const { objects, releases } = this.#parts
    let minted: Minted | null = null
    let releaseId = releases.of(session)
    try {
      if (isTerminal(decision.phase)) {
        await this.#end(session, signal)
        releaseId = null
      } else if (decision.sandbox === 'suspended') {
        if (raw !== null) await objects.setMode(raw, 'Suspended', signal)
        await this.#dropToken(session, signal)
        await releases.end(session)
        releaseId = null
      } else if (decision.sandbox === 'running' && !decision.begins) {
        minted = await this.#refresh(look, signal)
        if (releaseId === null) {
          releaseId = await releases.create(session, look, signal)
          // The Secret is there again.
          if (releaseId !== null) this.#tokens.delete(session.metadata.uid)
        }
        await objects.ensureNetwork(session, raw, isPlan(look.plan) ? look.plan.agent : null, signal)
        if (raw !== null) await objects.setMode(raw, 'Running', signal)
        else await this.#make(look, signal)
        // Its volume is there: what it was made from only takes space.
        if (decision.reason === 'Running') await objects.removeSnapshot(session, signal)
      } else if (decision.copies !== undefined) await objects.ensureSnapshot(session, decision.copies, signal)
    } catch (error) {
      return { minted, releaseId, failure: { error, message: reasonOf(error) } }
    }
    return { minted, releaseId, failure: null }
  }

  async #make({ session, plan }: SessionView, signal: AbortSignal): Promise<void> {
    const { objects, settings } = this.#parts
    const mode = session.status?.mode
    if (!isPlan(plan) || mode === undefined || (mode === 'claim' && objects.claimOf(session) !== null)) return
    const parts = { session, agent: plan.agent, tier: plan.tier.spec, settings }
    const snapshot = plan.isForkedWorkspace ? this.#snapshotFor(session) : null
    const sandbox = () => sandboxOf({ ...parts, ...(snapshot !== null && { snapshot }) })
    await objects.ensure(session, mode, { sandbox, pool: poolName(plan.tier.metadata.name) }, signal)
  }

  #snapshotFor(session: Session): SnapshotView {
    const { objects, snapshotsServed } = this.#parts
    const snapshot = objects.snapshotOf(session)
    if (snapshot !== null) return snapshot
    if (!snapshotsServed()) throw new ReconcileError('SnapshotsNotServed', 'VolumeSnapshots cannot be listed')
    const message = 'the VolumeSnapshot that the workspace begins with is gone: create another session'
    throw new ReconcileError('SnapshotGone', message)
  }

  /** Mints a token for a session with a dedicated pod if it has none, or an old one. */
  async #refresh({ session, plan, now, endsAt }: SessionView, signal: AbortSignal): Promise<Minted | null> {
    const { uid } = session.metadata
    if (session.status?.mode !== 'direct' || !isPlan(plan) || !hasToken(plan.tier.spec)) return null
    const due = this.#tokens.get(uid) ?? (await this.#dueAt(session, now, signal))
    if (due > now) {
      this.#tokens.set(uid, due)
      return null
    }
    const scoped = { ...plan, scopes: session.status.scopes ?? plan.scopes }
    const minted = await this.#parts.minter.mint(session, scoped, endsAt)
    const refreshAt = now + (minted.expiresAt - now) * REFRESH_AT
    await this.#parts.objects.putSecret(session, tokenSecret(session, { ...minted, refreshAt }), signal)
    this.#tokens.set(uid, refreshAt)
    return minted
  }

  /** When the token that an earlier leader minted is to be minted anew; 0 where there is none, or another one than the status names. */
  async #dueAt(session: Session, now: number, signal: AbortSignal): Promise<number> {
    const jti = session.status?.jti
    const secret = jti === undefined ? null : await this.#parts.objects.findSecret(session, signal)
    const held = secret === null ? null : heldTokenOf(secret)
    if (held === null || held.jti !== jti) return 0
    // Others can write annotations in the session's namespace: no time is later than that of a token minted now.
    return Math.min(held.refreshAt, now + TOKEN_SECONDS * 1000 * REFRESH_AT)
  }

  async #end(session: Session, signal: AbortSignal): Promise<void> {
    await this.#parts.objects.remove(session, signal)
    await this.#dropToken(session, signal)
    await this.#parts.releases.endAtLast(session)
  }

  async #dropToken(session: Session, signal: AbortSignal): Promise<void> {
    if (session.status?.mode !== 'direct') return
    const was = this.#tokens.get(session.metadata.uid)
    // 0: it was dropped, and the next one is due at once.
    if (was !== 0) await this.#parts.objects.removeSecret(session, signal)
    this.#tokens.set(session.metadata.uid, 0)
  }

  /** Writes what is new, and counts what has changed. */
  async #writeStatus(key: string, look: SessionView, { minted, releaseId }: Done): Promise<void> {
    const { session, decision } = look
    const { statusStore, known, log, onRoom, releases } = this.#parts
    const release = releases.variables(releaseId)
    const status = statusOf({ ...look, plan: isPlan(look.plan) ? look.plan : null, minted, release })
    if (!isNews(session, status)) return
    const written = await writtenStatus(statusStore, session, status)
    if (written === null) return
    onRoom(known.wrote(key, written))
    this.#last.set(key, written)
    const from = session.status?.phase
    if (from === decision.phase) return
    const { namespace, name } = session.metadata
    log.info({ session: `${namespace}/${name}`, from, to: decision.phase, reason: decision.reason }, 'session')
    this.#count(look, from)
    if (isTerminal(decision.phase)) this.#tokens.delete(session.metadata.uid)
  }

  #count({ session, decision, now }: SessionView, from: string | undefined): void {
    const { registry } = this.#parts
    const { phase, reason } = decision
    registry.counter('plat_session_phase_transitions_total').inc({ from: from ?? 'New', to: phase, reason })
    const tier = tierOf(this.#parts.mirror, session)
    const result = outcomeOf(phase)
    if (result !== null) registry.counter('plat_session_outcomes_total').inc({ tier, result })
    const { startedAt, sandboxRef, mode } = session.status ?? {}
    if (phase !== 'Running' || sandboxRef !== undefined || mode === undefined) return
    const seconds = (now - (timeOf(startedAt) ?? now)) / 1000
    registry.histogram('plat_session_ready_seconds').observe({ tier, mode }, seconds)
  }

  /** Its objects go with it, by their owner. One that had not ended was cancelled. */
  async #gone(key: string): Promise<Record<string, never>> {
    const session = this.#last.get(key)
    this.#last.delete(key)
    this.#parts.known.forget(key)
    if (session === undefined) return {}
    this.#tokens.delete(session.metadata.uid)
    const from = session.status?.phase ?? 'New'
    if (!isTerminal(from)) {
      const { registry, mirror } = this.#parts
      registry.counter('plat_session_phase_transitions_total').inc({ from, to: 'Cancelled', reason: 'Deleted' })
      registry.counter('plat_session_outcomes_total').inc({ tier: tierOf(mirror, session), result: 'Cancelled' })
      await this.#parts.releases.endAtLast(session)
    }
    return {}
  }
}

/** Credentials of a session after a step: a token that was minted, and the release that it has now. */
interface Done {
  readonly minted: Minted | null
  readonly releaseId: string | null
}

interface Failure {
  readonly error: unknown
  readonly message: string
}

/** A session that does not run yet reports what it waits for; a running one continues. */
function withFailure(look: SessionView, { message }: Failure): SessionView {
  const { decision, session } = look
  if (decision.phase === 'Preparing') return { ...look, decision: { ...decision, reason: 'NotPrepared', message } }
  // A session whose objects could not be deleted has not ended.
  const { phase = 'Pending' } = session.status ?? {}
  return { ...look, decision: { ...decision, phase, reason: 'NotDone', message } }
}

/** Null: the session is gone by now. */
async function writtenStatus(
  store: ReconcileParts['statusStore'],
  { metadata }: Session,
  status: StatusOf<'AgentSession'>,
): Promise<Session | null> {
  const applied = await store.applyStatus('AgentSession', metadata, status)
  if (applied === null || applied.kind === 'applied') return applied?.object ?? null
  const why =
    applied.kind === 'conflict'
      ? applied.reason
      : applied.problems.map(({ path, message }) => `${path}: ${message}`).join('; ')
  throw new Error(why)
}

/** The tier of a session's Agent; empty when it is not known any more. */
export function tierOf(mirror: Mirror, { metadata, spec }: Session): string {
  const agent = mirror.find('Agent', `${metadata.namespace}/${spec.agentRef}`)
  return agent === undefined ? '' : tierOfAgent(agent.spec)
}

function outcomeOf(phase: string): 'Succeeded' | 'Failed' | 'Expired' | 'Revoked' | 'Cancelled' | null {
  switch (phase) {
    case 'Succeeded':
    case 'Failed':
    case 'Expired':
    case 'Revoked':
    case 'Cancelled':
      return phase
    default:
      return null
  }
}
