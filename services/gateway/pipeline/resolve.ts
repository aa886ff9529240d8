import { deny, type Operation } from '../call/index.ts'
import { type Stage, stage } from './stage.ts'

type Resolve = Stage<'resolve', 'identity', 'target'>

/** Resolve stages by the prefix of their operations. Null: not enabled in the gateway's configuration. */
type ByPlane = Readonly<Record<'mcp' | 'model' | 'a2a', Resolve> & Record<'tunnel' | 'exec' | 'infra', Resolve | null>>

/**
 * Combines the resolve stages of the planes into one stage: each feature resolves its own names of servers, routes or agents. An operation
 * without a resolve stage is denied with `not_built`.
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
