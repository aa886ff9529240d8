import { type Clock, type Ids, reasonOf } from '@plat/core'
import type { Ledgers, Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Journals } from '@plat/state'
import type { AdminRoutes } from '../../admin/index.ts'
import { type Identity, noTenancy, type Tenancy } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Stage } from '../../pipeline/stage.ts'
import { revocationsJournal } from './format.ts'
import type { AbsentSession } from './list.ts'
import { createRevocationMetrics } from './metrics.ts'
import { type MirroredRevocation, mirroredRevocation } from './mirrored.ts'
import { type RevocationFollower, Revocations, type RevocationsParts } from './revocations.ts'
import { createRevocationRoutes } from './routes.ts'
import { createRevokedStage } from './stage.ts'

export interface RevocationsOptions {
  readonly config: {
    readonly auditPath: string
    readonly policyReloadSeconds: number
    readonly revocationsFile: string
    readonly revocationsRecheckMillis: number
    readonly revocationsJournalPath: string
    readonly revocationMirror: { readonly namespace: string }
  }
  readonly journals: Journals
  readonly ledgers: Ledgers
  /** Absent: there are no tenants. */
  readonly tenancy?: Tenancy
  readonly live: RevocationsParts['live']
  readonly forgetTokens?: RevocationsParts['forgetTokens']
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
}

export { createPreviewRoutes } from './preview.ts'

/** Revoked users, for features that store data of users. */
export interface RevokedUsers {
  /** Whether a user is revoked by name. Suspensions do not count. */
  revoked(user: string, issuer: string): boolean
  /** Calls `notify` with the target (`<user>` or `<issuer>#<user>`) of every new entry that revokes a user. */
  follow(notify: (name: string) => void): void
}

/** Break-glass entries as AgentRevocations. */
export interface MirroredRevocations {
  wanted(): readonly MirroredRevocation[]
  /** Calls `notify` after each change. */
  follow(notify: () => void): void
}

/** Emergency revocation of callers. */
export interface RevocationsFeature {
  readonly stage: Stage<'revoked', 'identity', never>
  readonly routes: AdminRoutes
  readonly users: RevokedUsers
  readonly mirrored: MirroredRevocations
  /** Returns whether a caller is revoked, or that is not known. */
  isRevoked(who: Identity): boolean
  /** Whether a caller is revoked, not only suspended; it need not be calling. False while that is not known. */
  hasRevoked(who: Identity): boolean
  /** Calls `notify` with each break-glass entry that was made or lifted, on any replica. */
  followChanges(notify: RevocationFollower): void
  /** Calls `notify` whenever live calls of revoked callers were ended, for work that continues without a call. */
  followCuts(notify: () => void): void
  /** Whether a session is revoked as a whole, not suspended. False while that is not known. */
  hasEnded(session: AbsentSession): boolean
  /** Whether a session is revoked or suspended as a whole, or that is not known. */
  hasStopped(session: AbsentSession): boolean
  /** False while every call is denied because the list cannot be read. */
  isKnown(): boolean
  close(): Promise<void>
}

/**
 * Revocations (docs/spec/gateway.md) of `revocationsFile` and of the break-glass journal, both loaded when it resolves. Rejects if the
 * journal cannot be read or is locked by another process. Without a valid file every call is denied.
 */
export async function createRevocations(options: RevocationsOptions): Promise<RevocationsFeature> {
  const { config, journals, ledgers, tenancy = noTenancy, live, forgetTokens, clock, ids, log } = options
  const journal = await journals.open(revocationsJournal(config))
  const failed = (message: string) => (error: unknown) => log.error({ error: reasonOf(error) }, message)
  const revocations = new Revocations({
    journal,
    file: config.revocationsFile === '' ? null : { path: config.revocationsFile, everyMs: everyMs(config) },
    mirrorNamespace: config.revocationMirror.namespace,
    clock,
    log,
    live,
    forgetTokens,
    // Not awaited: the ledger keeps the order, and the request's own record, which comes next, is awaited before the response.
    record: (record) =>
      void ledgers
        .of(tenantIn(record, tenancy))
        .append(record)
        .catch(failed('a revocation could not be recorded in the ledger')),
    metrics: createRevocationMetrics(options.metrics),
  })
  const close = async () => {
    revocations.close()
    await journal.close()
  }
  try {
    await revocations.open()
  } catch (error) {
    await close()
    throw error
  }
  const onFault = failed('a revocation could not be stored')
  return {
    isRevoked: (who) => revocations.judge(who) !== null,
    hasRevoked: (who) => revocations.judge(who)?.code === 'revoked',
    followChanges: (notify) => revocations.follow(notify),
    followCuts: (notify) => revocations.followCuts(notify),
    hasEnded: (session) => revocations.hasEnded(session),
    hasStopped: (session) => revocations.hasStopped(session),
    stage: createRevokedStage((who) => revocations.admit(who)),
    users: {
      revoked: (user, issuer) => revocations.hasRevoked(user, issuer),
      follow: (notify) => revocations.followUsers(notify),
    },
    isKnown: () => revocations.isKnown,
    mirrored: {
      wanted: () => revocations.breakglass().map((one) => mirroredRevocation(one, config.revocationMirror.namespace)),
      follow: (notify) => revocations.follow(() => notify()),
    },
    routes: createRevocationRoutes({ revocations, clock, ids, onFault }),
    close,
  }
}

/** Returns the tenant that a revocation is of; empty: of the fleet. */
function tenantIn({ namespace, scope, target }: Rec, tenancy: Tenancy): string {
  if (typeof namespace === 'string') return tenancy.of(namespace)
  return scope === 'tenant' && typeof target === 'string' && tenancy.has(target) ? target : ''
}

function everyMs({ revocationsRecheckMillis, policyReloadSeconds }: RevocationsOptions['config']): number {
  return revocationsRecheckMillis === -1 ? policyReloadSeconds * 1000 : revocationsRecheckMillis
}
