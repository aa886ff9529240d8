import type { Denial, Identity } from '../../call/index.ts'
import { admitted, type Stage, stage } from '../../pipeline/stage.ts'

/** The stage `revoked`. It is the first stage, so that revoked callers cannot probe which names exist, and repeats during a call. */
export function createRevokedStage(judge: (who: Identity) => Denial | null): Stage<'revoked', 'identity', never> {
  return stage({
    name: 'revoked',
    needs: ['identity'],
    gives: [],
    skipped: {},
    admit: (call) => judge(call.facts.identity) ?? admitted,
    still: (call) => judge(call.facts.identity),
  })
}
