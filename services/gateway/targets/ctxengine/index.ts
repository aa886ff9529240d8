import { type Clock, reasonOf, rfc3339 } from '@plat/core'
import type { Dialer } from '@plat/http'
import { AnchoredLedger, FollowedFile, type Ledgers, PositionFile } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { AdminRoutes } from '../../admin/index.ts'
import { type Call, type Denial, deny, type Identity } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { CtxengineConfig } from './config.ts'
import { type Context, Contexts, type ContextsOptions } from './contexts.ts'
import { Engine, type EngineEndpoint, type EngineOptions, type SavedContext } from './engine.ts'
import { ContextJournal } from './journal.ts'
import { createContextRoutes } from './routes.ts'

export interface CtxengineOptions<E extends EngineEndpoint> {
  readonly config: {
    readonly auditPath: string
    readonly ctxengine: CtxengineConfig
  }
  readonly ledgers: Ledgers
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly extraCA: string | null
  readonly credential: EngineOptions<E>['credential']
  readonly endpointOf: ContextsOptions<E>['endpointOf']
  readonly revocations: {
    hasRevoked(who: Identity): boolean
    followChanges(notify: () => void): void
    followCuts(notify: () => void): void
  }
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}

/** Contexts of sessions in engines. */
export interface ContextBinder<E> {
  /** Returns the caller's context, or why the call is refused; null without contexts. */
  bind(call: Call<'identity'>, endpoint: E, isStale: boolean): Promise<string | Denial> | Denial | null
  /** The engine uses the context for another request. */
  busy(): void
}

export interface Ctxengine<E> extends ContextBinder<E> {
  readonly routes: AdminRoutes
  /** Called when a call has ended. */
  released(call: string): void
  close(): Promise<void>
}

/**
 * Binds sessions to contexts (docs/spec/gateway.md, `ctxengine`), for routes of provider `ctxengine`, and anchors the engine's ledgers. Rejects if the file of
 * positions is malformed.
 */
export async function createCtxengine<E extends EngineEndpoint>(options: CtxengineOptions<E>): Promise<Ctxengine<E>> {
  const { config, metrics, revocations } = options
  const { stateless, checkpointDir } = config.ctxengine
  const anchors = await followLedgers(options)
  const engine = new Engine<E>(options)
  const journal = await ContextJournal.open({ ...options, path: `${config.auditPath}.contexts.jsonl` })
  const contexts = createContexts(options, engine, journal)
  metrics.gauge('plat_gateway_ctxengine_contexts').from(() => contexts.size)
  const sweep = () => void contexts.sweep()
  revocations.followChanges(sweep)
  revocations.followCuts(sweep)
  const move = async (action: 'save' | 'load', session: Parameters<typeof contexts.of>[0], path: string) => {
    const [context] = contexts.of(session)
    return context === undefined ? null : await engine.move(context.endpoint, action, context.id, path)
  }
  const record = async (action: string, by: string, session: object, saved: SavedContext) =>
    void (await options.ledgers.of('').append({ kind: 'admin', action, by, ...session, ...saved }))
  return {
    bind(call, endpoint, isStale) {
      const fault = anchors.find(({ failClosed, ledger }) => failClosed && !ledger.isVerified)
      if (fault !== undefined)
        return deny('audit_unavailable', `the ledger ${fault.name} of the engine does not verify`)
      return stateless ? null : contexts.bind(call, call.facts.identity, endpoint, isStale)
    },
    busy: () => contexts.busy(),
    released: (call) => contexts.release(call),
    routes: createContextRoutes({ dir: checkpointDir, move, record }),
    async close() {
      await contexts.close()
      await journal.close()
      await Promise.all(anchors.map(({ ledger }) => ledger.close()))
    },
  }
}

function createContexts<E extends EngineEndpoint>(
  options: CtxengineOptions<E>,
  engine: Engine<E>,
  journal: ContextJournal,
): Contexts<E> {
  const { config, metrics, revocations, clock, log } = options
  const { contextIdleSeconds, maxContexts, quarantineSnapshotDir: dir } = config.ctxengine
  const ops = metrics.counter('plat_gateway_ctxengine_context_ops_total')
  return new Contexts<E>({
    engine,
    idleMs: contextIdleSeconds * 1000,
    maxContexts,
    isRevoked: (who) => revocations.hasRevoked(who),
    quarantine: dir === '' ? null : (context) => quarantine(options, engine, context),
    onOp: (op) => ops.inc({ op }),
    journal,
    endpointOf: options.endpointOf,
    clock,
    log,
  })
}

/** Has the engine save the context of a revoked session, and records where. */
async function quarantine<E extends EngineEndpoint>(
  { config, ledgers, clock, log }: CtxengineOptions<E>,
  engine: Engine<E>,
  { id, endpoint, identity }: Context<E>,
): Promise<void> {
  const at = rfc3339(clock.now()).replaceAll(':', '')
  const file = `${config.ctxengine.quarantineSnapshotDir}/${at}-${id}.context`
  const saved = await engine.move(endpoint, 'save', id, file)
  const { namespace, agent, session } = identity
  await ledgers
    .of('')
    .append({ kind: 'alert', alert: 'context.quarantined', namespace, agent, session, file, ...saved })
    .catch((error: unknown) => log.error({ file, error: reasonOf(error) }, 'a quarantine could not be recorded'))
}

interface Anchor {
  readonly name: string
  readonly failClosed: boolean
  readonly ledger: AnchoredLedger
}

async function followLedgers<E extends EngineEndpoint>({
  config,
  ledgers,
  clock,
  log,
  metrics,
}: CtxengineOptions<E>): Promise<readonly Anchor[]> {
  const { auditAnchors } = config.ctxengine
  if (auditAnchors.length === 0) return []
  const positions = await PositionFile.open(`${config.auditPath}.ctxengine.json`)
  const anchors = auditAnchors.map(({ name, file, intervalSeconds, continuation, failClosed }): Anchor => {
    const saved = positions.of(name)
    const rules = { key: null, requireSigned: false, allowRestarts: false, continuation }
    const followed = new FollowedFile({ path: file, ...rules, position: saved })
    const verified = metrics.gauge('plat_gateway_ctxengine_audit_verified').labels({ anchor: name })
    const headSeq = metrics.gauge('plat_gateway_ctxengine_audit_head_seq').labels({ anchor: name })
    const failures = metrics.counter('plat_gateway_ctxengine_anchor_append_failures_total').labels({ anchor: name })
    const ledger = new AnchoredLedger({
      source: 'ctxengine',
      name,
      followed,
      last: saved?.anchored ?? null,
      everyMs: intervalSeconds * 1000,
      save: (anchored) => positions.save(name, followed.position, anchored),
      ledger: ledgers.of(''),
      meter: {
        verified: (isVerified) => verified.set(Number(isVerified)),
        headSeq: (seq) => headSeq.set(seq),
        appendFailed: () => failures.inc(),
      },
      clock,
      log,
    })
    return { name, failClosed, ledger }
  })
  await Promise.all(anchors.map(({ ledger }) => ledger.now()))
  return anchors
}
