import { watchFile } from '@plat/config'
import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import type { Snapshot, Snapshots } from '../../call/index.ts'
import type { Stage } from '../../pipeline/stage.ts'
import { compilePolicies, noPolicies, type PolicySet } from './compile.ts'
import { decodePolicies } from './decode.ts'
import { judgeTool } from './judge.ts'
import type { Shown } from './question.ts'
import { createPolicyStage, policySlot } from './stage.ts'

export type { PolicySet } from './compile.ts'
export { judge, judgeTool } from './judge.ts'
export type { PolicyInput, Shown } from './question.ts'
export { createPolicyStage, policySlot } from './stage.ts'

/** What the feature tells metrics; compose maps it to rows. */
export interface PolicyMetrics {
  /** `plat_gateway_policies_loaded` and `plat_gateway_policy_revision`. */
  loaded(policies: number, generation: number): void
  /** `plat_gateway_policy_reloads_total{result}`. */
  reloaded(result: 'ok' | 'error'): void
}

export interface PoliciesOptions {
  readonly config: { readonly policyFile: string; readonly policyReloadSeconds: number }
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
  readonly metrics: PolicyMetrics
}

export interface Policies {
  readonly stage: Stage<'policy', 'identity' | 'target' | 'taints', 'decision'>
  /** Is a tool of a list shown to this caller, by the policies of this snapshot? */
  judge(snapshot: Snapshot, shown: Shown, tool: string): boolean
  /** Reads the file now; the first check comes before the gateway serves. */
  check(): Promise<void>
  close(): void
}

/**
 * Policies of `policyFile` (document 3, "Policies"), read again every `policyReloadSeconds`. Without a readable file at
 * start everything is denied; a bad file later leaves the good one in force.
 */
export function createPolicies({ config, snapshots, clock, log, metrics }: PoliciesOptions): Policies {
  const path = config.policyFile
  const failed = (problems: readonly string[]) => {
    metrics.reloaded('error')
    const inForce = snapshots.current.get(policySlot)
    const meanwhile = inForce === noPolicies ? 'everything is denied' : 'the policies read before stay in force'
    log.error({ path, problems, revision: inForce.revision }, `policyFile is refused: ${meanwhile}`)
  }
  const publish = (set: PolicySet) => {
    snapshots.publish(policySlot, set)
    metrics.loaded(set.count, set.generation)
    metrics.reloaded('ok')
    log.info({ path, policies: set.count, generation: set.generation, revision: set.revision }, 'policies loaded')
  }
  const watch = watchFile({
    path,
    everyMs: config.policyReloadSeconds * 1000,
    clock,
    onBytes(bytes) {
      const read = readPolicies(bytes)
      if ('problems' in read) failed(read.problems)
      else publish(read.set)
    },
    onError: (error) => failed([error instanceof Error ? error.message : 'cannot be read']),
  })
  metrics.loaded(noPolicies.count, noPolicies.generation)
  return {
    stage: createPolicyStage(snapshots, clock),
    judge: (snapshot, shown, tool) => judgeTool(snapshot.get(policySlot), { ...shown, now: clock.now() }, tool),
    check: () => watch.check(),
    close: () => watch.stop(),
  }
}

function readPolicies(bytes: Uint8Array | null): { set: PolicySet } | { problems: string[] } {
  if (bytes === null) return { problems: ['no such file'] }
  const decoded = decodePolicies(bytes)
  return decoded.ok ? compilePolicies(decoded.file) : { problems: decoded.problems }
}
