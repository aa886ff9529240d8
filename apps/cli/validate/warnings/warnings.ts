import { Slices } from '@plat/core'
import { agentWarnings, serverWarnings } from './agents.ts'
import { priceWarnings, selectorWarnings, templateWarnings } from './budgets.ts'
import { gatewayWarnings } from './gateway.ts'
import { policyWarnings } from './policy.ts'
import type { Surroundings, Warning } from './surroundings.ts'

/** Most warnings that are listed at a time. */
const WARNINGS_MAX = 100

/** Everything that is accepted and probably not meant: entries that match nothing, missing secrets and prices. */
export async function findWarnings(surroundings: Surroundings): Promise<readonly Warning[]> {
  const found: Warning[] = []
  const slices = new Slices()
  for (const warning of allWarnings(surroundings)) {
    if (slices.isOver) await slices.next()
    if (warning === null) continue
    found.push(warning)
    if (found.length === WARNINGS_MAX) break
  }
  return found
}

/** Null after each object, so that the caller can pause. */
function* allWarnings(surroundings: Surroundings): Generator<Warning | null> {
  const { agents, servers, policies, budgets } = surroundings.declared
  yield* gatewayWarnings(surroundings)
  for (const agent of agents) {
    yield* agentWarnings(agent, surroundings)
    yield* priceWarnings(agent, surroundings)
    yield null
  }
  for (const server of servers) {
    yield* serverWarnings(server, surroundings)
    yield null
  }
  for (const policy of policies) {
    yield* policyWarnings(policy, surroundings)
    yield null
  }
  for (const budget of budgets) {
    yield* selectorWarnings(budget, surroundings)
    yield* templateWarnings(budget, surroundings)
    yield null
  }
}
