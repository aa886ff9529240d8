import { followFile } from '@plat/config'
import { type Clock, mapInSlices } from '@plat/core'
import type { Log } from '@plat/process'
import { cedarInstalled, loadCedar } from '@plat/resources/cedar'
import type { Call, Snapshot, Snapshots } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Stage } from '../../pipeline/stage.ts'
import { rulesWithApproval } from './approval-rules.ts'
import { compilePolicies, noPolicies, type PolicySet } from './compile.ts'
import type { ApprovalRule } from './compiled-policy.ts'
import { decodePolicies } from './decode.ts'
import type { Rego } from './engines/rego.ts'
import { HitCounts, type RuleHits } from './hits.ts'
import { judgeTools } from './judge.ts'
import { createPolicyMetrics } from './metrics.ts'
import { type Listing, policyInputOf, policyInputOfList } from './policy-input.ts'
import { createPolicyStage, policySlot } from './stage.ts'

export type { PolicySet } from './compile.ts'
export { createRego } from './engines/rego.ts'
export { judge } from './judge.ts'
export type { ListedTool, Listing, PolicyInput } from './policy-input.ts'
export { createSimulation } from './simulate/routes.ts'
export { createPolicyStage, policySlot } from './stage.ts'

export interface PoliciesOptions {
  readonly config: { readonly policyFile: string; readonly policyReloadSeconds: number }
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
  /** The external engine; null: not configured. Closed with the feature. */
  readonly rego?: Rego | null
  /** Loads the Cedar engine when a policy has a Cedar text. */
  readonly cedar?: typeof loadCedar
}

export interface Policies {
  readonly stage: Stage<'policy', 'identity' | 'target' | 'taints', 'decision'>
  /**
   * Returns for each tool of a list whether the policies of this snapshot show it to the caller. Sends one request to an external
   * engine.
   */
  shows(snapshot: Snapshot, listing: Listing, tools: readonly string[]): Promise<readonly boolean[]>
  /** Returns every approval rule that applies to this call, whichever one the decision names. */
  asking(call: Call<'identity' | 'target' | 'taints'>): readonly ApprovalRule[]
  /** Policies in force, as written. */
  listed(): PolicySet
  /** Calls that a rule of a policy in force has decided on this gateway; null: its default. */
  hits(policy: string, rule: string | null): RuleHits
  /** Loads the file. Call before the gateway serves. */
  check(): Promise<void>
  close(): void
}

/**
 * Policies of `policyFile` (docs/spec/gateway.md, "Policies"), reloaded every `policyReloadSeconds`. Without a readable file at start
 * everything is denied; an invalid file later leaves the previous policies in force.
 */
export function createPolicies(options: PoliciesOptions): Policies {
  const { config, snapshots, clock, log, rego = null, cedar = loadCedar } = options
  const metrics = createPolicyMetrics(options.metrics)
  const path = config.policyFile
  const refuse = (problems: readonly string[]) => {
    metrics.reloaded('error')
    const inForce = snapshots.current.get(policySlot)
    const meanwhile = inForce === noPolicies ? 'everything is denied' : 'the policies read before stay in force'
    log.error({ path, problems, revision: inForce.revision }, `policyFile is refused: ${meanwhile}`)
  }
  const counts = new HitCounts(clock)
  const publish = ({ set, engine }: Read) => {
    counts.keep(set)
    snapshots.publish(policySlot, set)
    const broken = set.cedars.filter(({ policies }) => policies === null)
    for (const { policy, fault } of broken) log.error({ path, policy, fault }, 'a Cedar text is refused: it denies')
    metrics.cedar(engine, broken.length)
    metrics.loaded(set.count, set.generation)
    metrics.reloaded('ok')
    log.info({ path, policies: set.count, generation: set.generation, revision: set.revision }, 'policies loaded')
  }
  const watch = followFile({
    path,
    everySeconds: config.policyReloadSeconds,
    clock,
    decode: (bytes) => readPolicies(bytes, cedar),
    publish,
    refuse,
  })
  metrics.loaded(noPolicies.count, noPolicies.generation)
  metrics.cedar(cedarInstalled(), 0)
  return {
    stage: createPolicyStage({ snapshots, clock, rego, tried: metrics.tried, decided: (one) => counts.count(one) }),
    async shows(snapshot, listing, tools) {
      const now = clock.now()
      const visible = judgeTools(snapshot.get(policySlot), { ...listing, now }, tools)
      if (rego === null) return visible
      const [native, isShown] = await Promise.all([visible, rego.shows(policyInputOfList(listing, now), tools)])
      return mapInSlices(tools, (tool, at) => native[at] === true && isShown(tool))
    },
    asking: (call) => rulesWithApproval(call.snapshot.get(policySlot), policyInputOf(call, clock.now())),
    listed: () => snapshots.current.get(policySlot),
    hits: (policy, rule) => counts.of(policy, rule),
    async check() {
      await Promise.all([watch.check(), rego?.check()])
    },
    close() {
      watch.stop()
      rego?.close()
    },
  }
}

/** Decoded policyFile, and whether the Cedar engine could be loaded if needed. */
interface Read {
  readonly set: PolicySet
  readonly engine: boolean
}

async function readPolicies(
  bytes: Uint8Array | null,
  cedar: typeof loadCedar,
): Promise<Read | { readonly problems: readonly string[] }> {
  if (bytes === null) return { problems: ['no such file'] }
  const decoded = decodePolicies(bytes)
  if (!decoded.ok) return decoded
  const needed = decoded.file.policies.some((policy) => policy.cedar !== '')
  const engine = needed ? await cedar() : null
  const compiled = compilePolicies(decoded.file, engine)
  if ('problems' in compiled) return compiled
  return { ...compiled, engine: needed ? engine !== null : cedarInstalled() }
}
