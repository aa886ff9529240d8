import { batchCharging } from './batches.ts'
import { startCallers } from './callers.ts'
import { startContent } from './content.ts'
import { startCopies } from './copies.ts'
import { startDecisions, startSimulation } from './decide.ts'
import { type Sinks, startEvidence } from './evidence.ts'
import { startSessions, startUsage } from './operate.ts'
import type { Shared } from './shared.ts'
import { startTargets } from './targets.ts'
import { startTraces } from './traces.ts'

/** Every feature of a gateway. */
export type Features = Awaited<ReturnType<typeof startFeatures>>

/** Starts the features, each after those it depends on; `keep` closes them in reverse order. Rejects when one cannot start. */
export async function startFeatures(shared: Shared, sinks: Sinks) {
  const callers = await startCallers(shared)
  const evidence = await startEvidence(shared, callers, sinks)
  const targets = await startTargets(shared, callers)
  const content = await startContent(shared, callers, targets)
  const decisions = await startDecisions(shared, { ...callers, ...evidence, ...targets })
  const sessions = startSessions(shared, { ...callers, ...targets, ...decisions })
  const simulation = startSimulation(shared, { ...content, ...decisions })
  const traces = startTraces(shared, targets)
  const { memory, servers, models, agents } = targets
  const activity = await startCopies(shared, { ...callers, ...targets })
  const { policies, budgets, energy } = decisions
  const files = [memory, servers, models, agents, content.guards, policies, budgets, energy]
  await Promise.all(files.map((feature) => feature.check()))
  await targets.batches.begin(batchCharging(shared, { ...callers, ...decisions, sessions }))
  // Reports that were not finished are charged at once, which needs the budgets.
  const usage = await startUsage(shared, { ...callers, ...decisions, sessions })
  return {
    ...callers,
    ...evidence,
    ...targets,
    ...content,
    ...decisions,
    sessions,
    usage,
    simulation,
    activity,
    traces,
  }
}
