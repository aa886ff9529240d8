import { type Clock, canonicalJson, reasonOf, rfc3339 } from '@plat/core'
import type { Log } from '@plat/process'
import type { Applied, Kind, Resource, ResourceStore } from '@plat/resources'
import type { Sovereignty } from '@plat/resources/sovereignty'
import { keyOf } from '../render/declared.ts'
import { pinsOf, policyPins } from '../render/pins.ts'
import { sovereigntyInForce } from '../render/sovereignty.ts'
import { type Condition, type Finding, withFindings } from './conditions.ts'
import { observed, type PinReport, pinnedFinding } from './pinned.ts'
import { reliedOnByAgent, reliedOnByServer, sovereignFinding } from './sovereign.ts'

/** How often reports are looked at, in milliseconds. */
const STATUS_EVERY_MS = 5000

export interface StatusOptions {
  readonly store: ResourceStore
  /** What is declared and not in force, one line each: `<Kind> <namespace>/<name> <path>: <why>`. */
  readonly refused: () => readonly string[]
  /** What the gateway reports of tools. */
  readonly pins: () => readonly PinReport[]
  readonly clock: Clock
  readonly log: Log
}

/**
 * Keeps the status of Agents, MCPServers, ToolPolicies, BudgetPolicies and SovereigntyPolicies (document 2): Ready, of Agents and servers
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
async function writeAll({ store, refused, pins, clock }: StatusOptions): Promise<void> {
  const [agents, servers, policies, budgets, sovereignty] = await Promise.all([
    store.list('Agent', {}),
    store.list('MCPServer', {}),
    store.list('ToolPolicy', {}),
    store.list('BudgetPolicy', {}),
    store.list('SovereigntyPolicy', {}),
  ])
  const context = {
    store,
    now: rfc3339(clock.now()),
    refused: refused(),
    reports: new Map(pins().map((report) => [report.id, report])),
    sovereignty: sovereigntyInForce({ sovereignty: sovereignty.items }),
    servers: new Map(servers.items.map((server) => [keyOf(server), server])),
  }
  const faults: string[] = []
  const attempt = async (object: Resource<Kind>, writing: Promise<void>) => {
    await writing.catch((error: unknown) => {
      faults.push(`${object.kind} ${keyOf(object)}: ${reasonOf(error)}`)
    })
  }
  for (const agent of agents.items) await attempt(agent, writeAgent(context, agent))
  for (const object of [...policies.items, ...budgets.items, ...sovereignty.items])
    await attempt(object, writeReady(context, object))
  const said = policyPins(policies.items, servers.items)
  for (const server of servers.items) {
    const off = pinsOf(server, said.get(keyOf(server)) ?? []) === null
    await attempt(server, writeServer(context, server, off))
  }
  if (faults.length > 0) throw new Error(faults.join('; '))
}

interface Writing {
  readonly store: ResourceStore
  /** RFC 3339. */
  readonly now: string
  readonly refused: readonly string[]
  readonly reports: ReadonlyMap<string, PinReport>
  /** Null: nobody declared a SovereigntyPolicy. */
  readonly sovereignty: Sovereignty | null
  /** By `<namespace>/<name>`. */
  readonly servers: ReadonlyMap<string, Resource<'MCPServer'>>
}

async function writeAgent(context: Writing, agent: Resource<'Agent'>): Promise<void> {
  const sovereign = sovereignFinding(context.sovereignty, reliedOnByAgent(agent, context.servers), agent.status)
  await writeFindings(context, agent, [readyFinding(context, agent), sovereign])
}

function writeReady(context: Writing, object: Resource<Exclude<Kind, 'MCPServer'>>): Promise<void> {
  return writeFindings(context, object, [readyFinding(context, object)])
}

async function writeFindings(
  context: Writing,
  object: Resource<Exclude<Kind, 'MCPServer'>>,
  findings: readonly (Finding | null)[],
): Promise<void> {
  const status = { ...object.status, ...base(context, object, findings) }
  if (same(object, status)) return
  const { kind, metadata } = object
  await written(context.store.applyStatus(kind, metadata, status))
}

async function writeServer(context: Writing, server: Resource<'MCPServer'>, off: boolean): Promise<void> {
  const report = off ? undefined : context.reports.get(keyOf(server))
  const ready = readyFinding(context, server)
  const pinned = pinnedFinding(report, off)
  const sovereign = sovereignFinding(context.sovereignty, reliedOnByServer(server), server.status)
  const { gatewayKey: _, ...before } = server.status ?? {}
  const status = {
    ...before,
    ...observed(before, report),
    ...(ready.status === 'True' && { gatewayKey: keyOf(server) }),
    ...base(context, server, [ready, pinned, sovereign]),
  }
  if (!same(server, status)) await written(context.store.applyStatus('MCPServer', server.metadata, status))
}

/** Throws when the store does not take a status. An object that is gone by now needs none. */
async function written(applying: Promise<Applied<Kind> | null>): Promise<void> {
  const applied = await applying
  if (applied?.kind === 'invalid')
    throw new Error(applied.problems.map(({ path, message }) => `${path}: ${message}`).join('; '))
  if (applied?.kind === 'conflict') throw new Error(applied.reason)
}

/** Null: nothing is said of a condition, and what was said before stays. */
function base({ now }: Writing, object: Resource, all: readonly (Finding | null)[]) {
  const { generation } = object.metadata
  const before: readonly Condition[] = object.status?.conditions ?? []
  const findings = all.filter((finding) => finding !== null)
  return { conditions: withFindings(before, findings, { generation, now }), observedGeneration: generation }
}

/** In force, or why not. */
function readyFinding({ refused }: Writing, object: Resource<Kind>): Finding {
  const mine = `${object.kind} ${keyOf(object)} `
  const why = refused.flatMap((line) => (line.startsWith(mine) ? [line.slice(mine.length)] : []))
  if (why.length > 0) return { type: 'Ready', status: 'False', reason: 'Refused', message: why.join('; ') }
  return { type: 'Ready', status: 'True', reason: 'InForce', message: '' }
}

function same(object: Resource, status: object): boolean {
  return canonicalJson(object.status ?? {}) === canonicalJson(status)
}
