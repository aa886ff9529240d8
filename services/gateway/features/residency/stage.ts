import type { Place } from '@plat/resources/sovereignty'
import { type Call, type Denial, deny, type Snapshot, type Snapshots, type Target } from '../../call/index.ts'
import { type Stage, stage, type Verdict } from '../../pipeline/stage.ts'
import { type Rules, residencySlot } from './rules.ts'

type Resolve = Stage<'resolve', 'identity', 'target'>

/** All places that may answer a call for a target. */
export type PlacesOf = (call: Pick<Call, 'name'>, snapshot: Snapshot, target: Target) => readonly Place[]

/** The stage, after which a target is refused when none of its places complies; while a call lasts it is asked again whenever rules change. */
export function residentResolve(inner: Resolve, snapshots: Snapshots, placesOf: PlacesOf): Resolve {
  const refused = (
    rules: Rules,
    call: Pick<Call, 'name'>,
    [snapshot, target]: readonly [Snapshot, Target],
  ): Denial | null => {
    // What is built in runs in the gateway itself.
    if (target.builtin) return null
    const faults = placesOf(call, snapshot, target).map((place) => rules.fault(place))
    const [first = null] = faults
    if (first === null || faults.includes(null)) return null
    return deny('residency_denied', `${target.server} ${first}`)
  }
  const judged = (rules: Rules, call: Call, verdict: Verdict<'target'>): Verdict<'target'> =>
    'target' in verdict ? (refused(rules, call, [call.snapshot, verdict.target]) ?? verdict) : verdict
  return stage({
    ...inner,
    admit(call) {
      const verdict = inner.admit(call)
      const rules = call.snapshot.get(residencySlot)
      if (rules === null) return verdict
      return verdict instanceof Promise ? verdict.then((one) => judged(rules, call, one)) : judged(rules, call, verdict)
    },
    still(call) {
      const no = inner.still?.(call) ?? null
      if (no !== null || snapshots.current === call.snapshot) return no
      const rules = snapshots.current.get(residencySlot)
      return rules === null ? null : refused(rules, call, [snapshots.current, call.facts.target])
    },
  })
}
