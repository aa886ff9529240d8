import { type HoldItem, windowOf } from '@plat/state'
import type { Call } from '../../call/index.ts'

const MINUTE_SECONDS = 60

/** Returns the item for the tokens of a session at a route in this minute. */
export function minuteItem(
  { facts: { identity, target } }: Call<'identity' | 'target'>,
  now: number,
  cap: number,
  amount: number,
): HoldItem {
  const key = ['tpm', identity.namespace, identity.agent, identity.session, target.key].join('/')
  const limit = `the limit of ${cap} tokens a minute of this session at the model route ${target.key} (tokensPerMinute)`
  return { key, window: windowOf(now, MINUTE_SECONDS), cap, amount, unit: 'tokens', limit }
}

/** The smaller of two limits; null is unlimited. */
export function smaller(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other)
}
