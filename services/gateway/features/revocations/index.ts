import type { Clock } from '@plat/core'
import type { Denial, Identity } from '../../call/index.ts'
import type { Stage } from '../../pipeline/stage.ts'
import { type Revocation, RevocationList, type RevocationScope } from './list.ts'
import { createRevokedStage } from './stage.ts'

export { revocationMirrorBlock, revocationsBlock } from './config.ts'
export type { Revocation, RevocationScope, RevocationTarget } from './list.ts'

/** The kill switch: who may not call any more, and the calls under way that end because of it. */
export interface Revocations {
  readonly stage: Stage<'revoked', 'identity', never>
  /** In force when it returns; answers how many live calls it ended. Throws a RangeError when the list is full. */
  add(revocation: Revocation): number
  /** False when there is no such entry. */
  lift(id: string): boolean
  /** Entries in force. */
  list(): readonly Revocation[]
  judge(who: Identity): Denial | null
  /** A list in memory has nothing to close; one in a journal will. */
  close(): void
}

export interface RevocationsParts {
  readonly clock: Clock
  /** Reaches the calls under way. */
  readonly live: { cut(judge: (who: Identity) => Denial | null): number }
  /** `plat_gateway_revoked_total`: once for each call that a revocation refused or ended. */
  readonly metrics: { revoked(scope: RevocationScope): void }
}

/** A list in memory: it lasts as long as the process. */
export function createRevocations({ clock, live, metrics }: RevocationsParts): Revocations {
  const entries = new RevocationList()
  const judge = (who: Identity) => entries.judge(who, clock.now())
  const cut = (who: Identity) => {
    const denial = judge(who)
    if (denial !== null && denial.revoked !== null) metrics.revoked(denial.revoked)
    return denial
  }
  return {
    stage: createRevokedStage(judge, metrics.revoked),
    add(revocation) {
      entries.add(revocation, clock.now())
      return live.cut(cut)
    },
    lift: (id) => entries.lift(id),
    list: () => entries.list(clock.now()),
    judge,
    close() {},
  }
}
