import { whenReady } from '@plat/core'
import type { UpstreamPlacement } from '@plat/resources/sovereignty'
import { type Call, type Denial, deny, type Snapshot, type Snapshots, type Target } from '../../call/index.ts'
import { type Stage, stage, type Verdict } from '../../pipeline/stage.ts'
import { type Rules, residencySlot } from './rules.ts'

type Resolve = Stage<'resolve', 'identity', 'target'>

/** Returns all places that may serve a call to a target. */
export type PlacesOf = (call: Pick<Call, 'name'>, snapshot: Snapshot, target: Target) => readonly UpstreamPlacement[]

/**
 * Wraps the resolve stage. Refuses a call if its session runs where the target's data must not go, or if none of the target's places
 * complies. Checked again during a call when the rules change.
 */
export function residentResolve(inner: Resolve, snapshots: Snapshots, placesOf: PlacesOf): Resolve {
  const refused = (
    rules: Rules,
    call: Call<'identity'>,
    [snapshot, target]: readonly [Snapshot, Target],
  ): Denial | null => {
    const { tier } = call.facts.identity
    const jurisdiction = rules.tierJurisdiction(tier)
    const fault = jurisdiction === null ? null : rules.fault({ jurisdiction, dataClass: target.dataClass })
    if (fault !== null) return deny('residency_denied', `the session is of tier ${tier}, which ${fault}`)
    // Built-in servers run in the gateway itself.
    if (target.builtin) return null
    const faults = placesOf(call, snapshot, target).map((place) => rules.fault(place))
    const [first = null] = faults
    if (first === null || faults.includes(null)) return null
    return deny('residency_denied', `${target.server} ${first}`)
  }
  const judged = (verdict: Verdict<'target'>, rules: Rules, call: Call<'identity'>): Verdict<'target'> =>
    'target' in verdict ? (refused(rules, call, [call.snapshot, verdict.target]) ?? verdict) : verdict
  return stage({
    ...inner,
    admit(call) {
      const verdict = inner.admit(call)
      const rules = call.snapshot.get(residencySlot)
      if (rules === null) return verdict
      return whenReady(verdict, judged, rules, call)
    },
    still(call) {
      const no = inner.still?.(call) ?? null
      if (no !== null || snapshots.current === call.snapshot) return no
      const rules = snapshots.current.get(residencySlot)
      return rules === null ? null : refused(rules, call, [snapshots.current, call.facts.target])
    },
  })
}
