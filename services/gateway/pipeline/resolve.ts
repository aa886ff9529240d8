import { deny, type Operation } from '../call/index.ts'
import { type Stage, stage } from './stage.ts'

type Resolve = Stage<'resolve', 'identity', 'target'>

/** Stages by the word in front of the dot of their operations. Null: what the gateway's configuration leaves off. */
type ByPlane = Readonly<Record<'mcp' | 'model' | 'a2a', Resolve> & Record<'tunnel' | 'exec' | 'infra', Resolve | null>>

/**
 * One resolve stage out of one for each plane: names of servers, routes and agents are found by the features that know them. An operation of
 * none of them is refused.
 */
export function resolveByPlane(planes: ByPlane): Resolve {
  const of = (operation: Operation): Resolve | null => {
    if (operation.startsWith('mcp.')) return planes.mcp
    if (operation.startsWith('model.')) return planes.model
    if (operation.startsWith('a2a.')) return planes.a2a
    return operation === 'tunnel' || operation === 'exec' || operation === 'infra' ? planes[operation] : null
  }
  return stage({
    name: 'resolve',
    needs: ['identity'],
    gives: ['target'],
    skipped: planes.mcp.skipped,
    admit: (call) => of(call.operation)?.admit(call) ?? deny('not_built', `${call.operation} is not built yet`),
    settle: (call, outcome) => of(call.operation)?.settle?.(call, outcome),
    still: (call) => of(call.operation)?.still?.(call) ?? null,
  })
}
