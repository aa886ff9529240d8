import { type Clock, reasonOf, rfc3339 } from '@plat/core'
import type { Log } from '@plat/process'
import type { ResourceStore } from '@plat/resources'
import type { EndpointJurisdictions } from '@plat/resources/regions/endpoint'
import { keyOf } from '../render/declared.ts'
import type { PinReport } from './pinned.ts'
import { Statuses } from './status.ts'

/** How often reports are looked at, in milliseconds. */
const STATUS_EVERY_MS = 5000

export interface StatusOptions {
  readonly store: ResourceStore
  /** Declared resources that are not in force, one line each: `<Kind> <namespace>/<name> <path>: <why>`. */
  readonly refused: () => readonly string[]
  /** The gateway's reports about tools. */
  readonly pins: () => readonly PinReport[]
  /** `endpointJurisdictions` of the gateway. */
  readonly endpoints: () => EndpointJurisdictions
  readonly clock: Clock
  readonly log: Log
}

/**
 * Keeps the status of Agents, MCPServers, ToolPolicies, BudgetPolicies, MemoryStores, SovereigntyPolicies and TrustTiers (docs/spec/crds.md): Ready, of Agents and servers
 * whether they comply with the SovereigntyPolicy, and of servers how their tools stand. Writes
 * only what changed; a status that cannot be written is logged and tried again.
 */
export function startStatus(options: StatusOptions): { check(): Promise<void>; stop(): Promise<void> } {
  const { clock, log } = options
  let writing: Promise<void> | null = null
  const check = () => {
    writing ??= writeAll(options).finally(() => {
      writing = null
    })
    return writing
  }
  const failed = (error: unknown) => log.error({ error: String(error) }, 'the status of resources cannot be written')
  const cancel = clock.every(STATUS_EVERY_MS, () => void check().catch(failed))
  return {
    check,
    async stop() {
      cancel()
      await writing?.catch(failed)
    },
  }
}

/** Rejects when all are tried, with a word on each object whose status could not be written. */
async function writeAll({ store, refused, pins, endpoints, clock }: StatusOptions): Promise<void> {
  const [agents, servers, policies, budgets, memory, sovereignty, tiers] = await Promise.all([
    store.list('Agent', {}),
    store.list('MCPServer', {}),
    store.list('ToolPolicy', {}),
    store.list('BudgetPolicy', {}),
    store.list('MemoryStore', {}),
    store.list('SovereigntyPolicy', {}),
    store.list('TrustTier', {}),
  ])
  const reports = new Map(pins().map((report) => [report.id, report]))
  const statuses = new Statuses({
    servers: servers.items,
    policies: policies.items,
    sovereignty: sovereignty.items,
    tiers: tiers.items,
    endpoints: endpoints(),
    activeSessions: null,
    refused: refused(),
    pinReport: (server) => reports.get(keyOf(server)) ?? null,
    running: () => null,
  })
  const problems: string[] = []
  for (const page of [agents, policies, budgets, memory, sovereignty, tiers, servers]) {
    for (const object of page.items) {
      await statuses.write(store, object, rfc3339(clock.now())).catch((error: unknown) => {
        problems.push(`${object.kind} ${keyOf(object)}: ${reasonOf(error)}`)
      })
    }
  }
  if (problems.length > 0) throw new Error(problems.join('; '))
}
