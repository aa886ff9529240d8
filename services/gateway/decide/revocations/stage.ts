import type { Denial, Identity } from '../../call/index.ts'
import { admitted, type Stage, stage } from '../../pipeline/stage.ts'

/** The stage `revoked`: first of all, so that nobody who is revoked learns which names exist. It is asked again while the call lasts. */
export function createRevokedStage(ask: (who: Identity) => Denial | null): Stage<'revoked', 'identity', never> {
  return stage({
    name: 'revoked',
    needs: ['identity'],
    gives: [],
    skipped: {},
    admit: (call) => ask(call.facts.identity) ?? admitted,
    still: (call) => ask(call.facts.identity),
  })
}
