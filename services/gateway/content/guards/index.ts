import { watchFile } from '@plat/config'
import type { Clock, PoolObservers } from '@plat/core'
import { reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Review, Stage } from '../../pipeline/stage.ts'
import type { GuardConfig } from './config.ts'
import { Guard } from './guard.ts'
import { type GuardedCall, Guards, type GuardsOptions } from './guards.ts'
import { createGuardMetrics } from './metrics.ts'
import { createGuardReview } from './review.ts'
import { createGuardStage, type GuardLabels } from './stage.ts'
import { typeOf } from './types/types.ts'

export interface GuardsParts extends Pick<GuardsOptions, 'taint' | 'labelsOf'> {
  readonly config: { readonly guards: readonly GuardConfig[]; readonly policyReloadSeconds: number }
  readonly env: NodeJS.ProcessEnv
  readonly dialer: Dialer
  /** PEM of `upstreamCAFile`, or null. */
  readonly extraCA: string | null
  readonly ledgers: Ledgers
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
  readonly pools?: PoolObservers<'guard_texts'>
}

/** Classifiers of tool results and of texts from agents. */
export interface GuardsFeature {
  readonly stage: Stage<'guard', 'identity' | 'target' | 'redacted', never>
  readonly review: Review<'identity' | 'target'>
  /** Reads the keys; first called before the gateway serves. */
  check(): Promise<void>
  close(): void
}

/** Injection classifiers (docs/spec/gateway.md, `guards[]`). */
export function createGuards(parts: GuardsParts): GuardsFeature {
  const { config, env, dialer, extraCA, ledgers, clock, log, taint, labelsOf, pools } = parts
  const metrics = createGuardMetrics(parts.metrics)
  const observer = pools?.of('guard_texts')
  const connection = extraCA === null ? {} : { caPEM: extraCA }
  const guards = config.guards.map(
    (one) =>
      new Guard({
        config: one,
        type: typeOf(one.type, env),
        dialer,
        connection,
        clock,
        log,
        onTook: (seconds) => metrics.took(one.name, seconds),
        onRefused: (bound) => observer?.refused(bound),
      }),
  )
  observer?.watch(() => guards.reduce((sum, guard) => sum + guard.reading, 0))
  const onUnread: GuardsOptions['onUnread'] = (call, guard, target) => {
    const failed = (error: unknown) => log.error({ error: reasonOf(error) }, 'an unread text could not be recorded')
    ledgers
      .of(call.facts.identity.tenant)
      .append(unreadRecord(call, guard, target))
      .catch(failed)
  }
  const all = new Guards({ guards, taint, labelsOf, onUnread, metrics })
  const brought: GuardLabels = new WeakMap()
  const watches = guards.filter((guard) => guard.config.apiKeyFile !== '').map((guard) => watchKey(guard, parts))
  return {
    stage: createGuardStage(all, brought),
    review: createGuardReview(all, brought),
    check: async () => void (await Promise.all(watches.map((watch) => watch.check()))),
    close() {
      for (const watch of watches) watch.stop()
    },
  }
}

/** Follows the key file of a guard, so that a rotated key applies without a restart. */
function watchKey(guard: Guard, { config, clock, log }: Pick<GuardsParts, 'config' | 'clock' | 'log'>) {
  const { name, apiKeyFile: path } = guard.config
  return watchFile({
    path,
    everyMs: config.policyReloadSeconds * 1000,
    clock,
    onBytes(bytes) {
      guard.key = bytes === null ? null : Buffer.from(bytes).toString('utf8').trim() || null
      if (guard.key === null) log.error({ guard: name, path }, 'the key of a guard cannot be read')
    },
    onError(error) {
      guard.key = null
      log.error({ guard: name, path, error: reasonOf(error) }, 'the key of a guard cannot be read')
    },
  })
}

function unreadRecord({ id, facts: { identity, target } }: GuardedCall, guard: string, what: string) {
  const { namespace, agent, session, user, jti } = identity
  return {
    kind: 'alert',
    alert: 'guard_unavailable',
    call: id,
    namespace,
    agent,
    session,
    user: user ?? undefined,
    jti,
    server: target.server,
    tool: target.tool ?? undefined,
    guard,
    target: what,
  } as const
}
