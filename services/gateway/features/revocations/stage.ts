import type { Denial, Identity } from '../../call/index.ts'
import { admitted, type Stage, stage } from '../../pipeline/stage.ts'
import type { RevocationScope } from './list.ts'

/** The stage `revoked`: first of all, so that nobody who is revoked learns which names exist. It is asked again while the call lasts. */
export function createRevokedStage(
  judge: (who: Identity) => Denial | null,
  count: (scope: RevocationScope) => void,
): Stage<'revoked', 'identity', never> {
  const ask = (who: Identity) => {
    const denial = judge(who)
    if (denial !== null && denial.revoked !== null) count(denial.revoked)
    return denial
  }
  return stage({
    name: 'revoked',
    needs: ['identity'],
    gives: [],
    skipped: {},
    admit: (call) => ask(call.facts.identity) ?? admitted,
    still: (call) => ask(call.facts.identity),
  })
}
