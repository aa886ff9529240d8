import { deny } from '../call/index.ts'
import { type Stage, stage } from './stage.ts'

type Resolve = Stage<'resolve', 'identity', 'target'>

/**
 * One resolve stage out of one for each plane, by the word in front of the operation's dot: names of servers, routes and agents are
 * found by the features that know them. An operation of none of them is refused.
 */
export function resolveByPlane(planes: ReadonlyMap<string, Resolve>, skipped: Resolve['skipped']): Resolve {
  const of = (operation: string) => planes.get(operation.slice(0, Math.max(operation.indexOf('.'), 0)) || operation)
  return stage({
    name: 'resolve',
    needs: ['identity'],
    gives: ['target'],
    skipped,
    admit: (call) => of(call.operation)?.admit(call) ?? deny('not_built', `${call.operation} is not built yet`),
    settle: (call, outcome) => of(call.operation)?.settle?.(call, outcome),
    still: (call) => of(call.operation)?.still?.(call) ?? null,
  })
}
