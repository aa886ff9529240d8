import { type Clock, reasonOf } from '@plat/core'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Journals } from '@plat/state'
import type { AdminRoutes } from '../../admin/index.ts'
import { noTenancy, type Snapshot, type Snapshots, type Tenancy } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Stage } from '../../pipeline/stage.ts'
import { PinBook, type PinNotice } from './book.ts'
import { offeredTools } from './definition.ts'
import { pinsJournal } from './events.ts'
import { createPinReports } from './report.ts'
import { createPinRoutes, type PinDecided } from './routes.ts'
import { type PinRules, pinDecision } from './rules.ts'
import { createPinStage, type ListTools } from './stage.ts'
import type { ServerPins } from './view.ts'

export type { PinRules } from './rules.ts'
export type { ListTools } from './stage.ts'
export type { ServerPins } from './view.ts'

/** Label values of `plat_gateway_tool_pin_events_total`. */
type PinMetric = 'learned' | 'drifted' | 'hidden' | 'denied' | 'held'

export interface PinsParts {
  readonly config: { readonly pinStorePath: string; readonly pinCacheSeconds: number }
  readonly journals: Journals
  readonly rules: (snapshot: Snapshot, server: string) => PinRules | null
  readonly list: ListTools
  readonly snapshots: Pick<Snapshots, 'current'>
  readonly ledgers: Ledgers
  /** Absent: there are no tenants. */
  readonly tenancy?: Tenancy
  readonly clock: Clock
  readonly log: Log
  readonly metrics: GatewayMetrics
}

/** The list that a caller sees. */
export interface ListedAt {
  readonly snapshot: Snapshot
  readonly facts: { readonly target: { readonly key: string; readonly server: string } }
}

/** Detects changed tool definitions; under `enforce` hides them, refuses their calls or requires an approval. */
export interface PinsFeature {
  readonly stage: Stage<'pins', 'identity' | 'target', 'pin'>
  /** Returns for each tool of a list whether the caller may see it. `tools` comes from `parseLossless`. */
  shows(call: ListedAt, tools: readonly unknown[]): Promise<readonly boolean[]>
  /** Pin state of every server, for the status of MCPServers (docs/spec/crds.md). */
  reports(): readonly ServerPins[]
  /** Servers that were seen or learned. */
  servers(): Iterable<string>
  /** Pin state of one server; null if it is unknown or its mode is `off`. */
  report(server: string): ServerPins | null
  readonly routes: AdminRoutes
  close(): Promise<void>
}

/**
 * Tool pins (docs/spec/crds.md, `toolPins`) on the journal of `pinStorePath`, in memory when it is empty. Rejects if the journal cannot
 * be read.
 */
export async function createPins(parts: PinsParts): Promise<PinsFeature> {
  const { config, journals, rules, list, snapshots, clock, log, metrics } = parts
  const count = createEventCounter(metrics)
  const journal = await journals.open(pinsJournal(config))
  const failed = (message: string) => (error: unknown) => log.error({ error: reasonOf(error) }, message)
  const { notify, decided } = createPinReporter({ ...parts, count })
  const book = await PinBook.open({
    journal,
    clock,
    onNotice: notify,
    onFault: failed('a pin could not be stored and holds only until the gateway stops'),
  })
  const reports = createPinReports(book, (server) => rules(snapshots.current, server))
  return {
    reports: () => reports.all(),
    servers: () => reports.servers(),
    report: (server) => reports.summary(server),
    routes: createPinRoutes({
      book,
      reports,
      onDecided: decided,
      onFault: failed('a decision about a tool could not be stored'),
    }),
    stage: createPinStage({
      book,
      clock,
      rules,
      list,
      cacheMs: config.pinCacheSeconds * 1000,
      onFault: failed('the tools of a server could not be listed'),
      onRefused: count,
    }),
    async shows({ snapshot, facts }, tools) {
      const { key, server } = facts.target
      const found = rules(snapshot, key)
      if (found === null) return tools.map(() => true)
      const offered = await offeredTools(tools)
      const standings = book.observe(key, found, offered)
      const refused = new Set(
        offered
          .filter(
            (tool, at) => pinDecision(found, standings[at] ?? 'unpinned', book.isRejected(key, tool)) === 'refuse',
          )
          .map(({ name }) => name),
      )
      for (const _ of refused) count(server, 'hidden')
      return tools.map((tool) => !refused.has(nameOf(tool)))
    },
    async close() {
      book.close()
      await journal.close()
    },
  }
}

interface ReporterParts extends Pick<PinsParts, 'ledgers' | 'tenancy' | 'log'> {
  readonly count: (server: string, event: PinMetric) => void
}

/** Counts, logs and records changes of tools, and decisions of people about them. */
function createPinReporter({ ledgers, tenancy = noTenancy, log, count }: ReporterParts) {
  const record = (change: Omit<PinNotice, 't'> & { readonly alert: string; readonly by?: string }) =>
    ledgers
      .of(tenancy.of(change.server.split('/', 1)[0] ?? ''))
      .append({ kind: 'alert', ...change })
      .catch((error: unknown) =>
        log.error({ error: reasonOf(error), alert: change.alert }, 'a change of a tool could not be recorded'),
      )
  return {
    notify({ server, t, tool, digest }: PinNotice) {
      // The series of a server has the name that calls use.
      count(server.slice(server.indexOf('/') + 1), t)
      if (t !== 'drifted') return
      log.warn({ server, tool, digest }, 'tool definition differs from its pins')
      void record({ alert: 'pin.drift', server, tool, digest })
    },
    decided({ decision, server, tool, digest, by }: PinDecided) {
      log.info({ server, tool, digest, by }, `a changed tool was ${decision}`)
      void record({ alert: `pin.${decision}`, server, tool, digest, by })
    },
  }
}

/** Returns an empty name for values that are not tools; policy then hides them. */
function nameOf(tool: unknown): string {
  return typeof tool === 'object' && tool !== null && 'name' in tool && typeof tool.name === 'string' ? tool.name : ''
}

/** `server` is the name that the caller used, or `<ns>/<name>` where no caller is known. */
function createEventCounter(metrics: GatewayMetrics): (server: string, event: PinMetric) => void {
  const events = metrics.counter('plat_gateway_tool_pin_events_total')
  return (server, event) => events.inc({ server, event })
}
