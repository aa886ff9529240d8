import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { type Clock, type PoolObservers, reasonOf, watchedPool } from '@plat/core'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Journals } from '@plat/state'
import type { AdminRoutes } from '../../admin/index.ts'
import type { BuiltinServer, Snapshots, Tenancy, ToolLabels } from '../../call/index.ts'
import type { Review } from '../../pipeline/stage.ts'
import { memoryJournal } from './events.ts'
import { createMemoryMark, type Labels, type LabelsBySignal } from './mark.ts'
import { Memory } from './memory.ts'
import type { Owner } from './owner.ts'
import { createMemoryRoutes } from './routes.ts'
import { MemoryScopes, type PlacesParts } from './scopes.ts'
import { storesSlot, watchStores } from './stores.ts'
import { createMemoryTools } from './tools.ts'

export interface MemoryParts {
  readonly config: {
    readonly memoryFile: string
    readonly memoryDataDir: string
    readonly memorySweepSeconds: number
    readonly auditPath: string
    readonly policyReloadSeconds: number
    readonly identity: { readonly trustedIssuers: readonly { readonly issuer: string }[] }
  }
  readonly labels: Labels
  readonly screens: PlacesParts['screens']
  readonly journals: Journals
  readonly snapshots: Snapshots
  readonly ledgers: Ledgers
  /** Absent: there are no tenants. */
  readonly tenancy?: Tenancy
  readonly pools?: PoolObservers<'memory_bytes'>
  readonly clock: Clock
  readonly log: Log
}

/** Memory of agents (docs/spec/gateway.md, `memoryFile`; docs/spec/crds.md, MemoryStore). */
export interface MemoryFeature {
  /** `plat-memory`, or null without a memoryFile. */
  readonly server: BuiltinServer | null
  readonly reviews: readonly Review<'identity' | 'target'>[]
  readonly routes: AdminRoutes
  /** Reads the file; first called before the gateway serves. */
  check(): Promise<void>
  close(): Promise<void>
}

const NAME = 'plat-memory'
/** Labels depend on the returned items; there are no labels for all responses. */
const NO_LABELS: ToolLabels = { taints: [], clearTaints: [], sinks: [] }
const OFF: MemoryFeature = { server: null, reviews: [], routes: { mount() {} }, async check() {}, async close() {} }

/** Rejects if the journal in `memoryDataDir` cannot be read. */
export async function createMemory(parts: MemoryParts): Promise<MemoryFeature> {
  const { config, labels, journals, snapshots, clock, log, screens, pools } = parts
  if (config.memoryFile === '') return OFF
  const spec = memoryJournal(config)
  if (!journals.shared) await mkdir(path.dirname(spec.path), { recursive: true, mode: 0o700 })
  const journal = await journals.open(spec)
  const onFault = (error: unknown) => log.error({ error: reasonOf(error) }, 'memory could not be stored')
  const memory = await Memory.open({
    journal,
    onFault,
    pool: watchedPool({ name: 'memory_bytes', observer: pools?.of('memory_bytes') }),
  })
  const watch = watchStores(parts)
  const places = new MemoryScopes({
    trusted: new Set(config.identity.trustedIssuers.map(({ issuer }) => issuer)),
    screens,
  })
  const brought: LabelsBySignal = new WeakMap()
  const tools = createMemoryTools({
    memory,
    places,
    labelsOf: (caller) => labels.labelsOf(caller),
    brings: ({ signal }, all) => brought.set(signal, all),
    clock,
    onFault,
  })
  const sweep = () => memory.sweep((owner, item) => item.at + retentionOf(owner, snapshots, item) > clock.now())
  const stopSweep = clock.every(config.memorySweepSeconds * 1000, () => void sweep().catch(onFault))
  return {
    server: {
      name: NAME,
      title: 'Memory',
      instructions: 'Stores texts beyond this conversation, as configured in the stores of this namespace.',
      trust: 'trusted',
      dataClass: 'internal',
      labels: () => NO_LABELS,
      tools: (caller) => (places.isEmpty(caller) ? [] : tools),
    },
    reviews: [createMemoryMark(labels, brought, NAME)],
    routes: createMemoryRoutes({ ...parts, memory, onFault }),
    check: () => watch.check(),
    async close() {
      stopSweep()
      watch.stop()
      await memory.close()
      await journal.close()
    },
  }
}

/** Retention of an item in milliseconds: by its store, or as recorded if the store was removed. */
function retentionOf(
  { namespace, store, scope }: Owner,
  snapshots: Snapshots,
  { at, keepUntil }: { readonly at: number; readonly keepUntil: number },
): number {
  const now = snapshots.current.get(storesSlot).of(namespace).get(store)
  return now?.scope === scope ? now.retentionMs : keepUntil - at
}
