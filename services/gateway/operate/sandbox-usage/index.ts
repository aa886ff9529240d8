import { hostname } from 'node:os'
import { type Clock, type Ids, type PoolObservers, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import type { Journals } from '@plat/state'
import type { FastifyInstance } from 'fastify'
import type { DeskParts } from './usage-reports.ts'

export interface SandboxUsageOptions extends Pick<DeskParts, 'find' | 'charging' | 'see'> {
  readonly config: {
    readonly sandboxUsage: {
      readonly enabled: boolean
      readonly reporters: readonly string[]
      readonly audience: string
    }
    readonly auditPath: string
  }
  /** Returns the ledger of the tenant of a namespace, with its file. */
  readonly ledgerOf: DeskParts['ledgerOf']
  /** Locates the API server: in a cluster by its variables, elsewhere by `KUBECONFIG`. */
  readonly env: NodeJS.ProcessEnv
  readonly journals: Journals
  readonly dialer: Dialer
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly pools?: PoolObservers<'reported_sessions'>
}

export interface SandboxUsage {
  /** Serves `POST /v1/usage/sandbox`. */
  pages(app: FastifyInstance): void
  close(): Promise<void>
}

/** Interval of the search for old sessions, in milliseconds. */
const SWEEP_EVERY_MS = 600_000

/** Creates sandbox usage (docs/spec/gateway.md, `sandboxUsage`); null while off. Rejects with one line if no API server is configured. */
export async function createSandboxUsage(options: SandboxUsageOptions): Promise<SandboxUsage | null> {
  const { config, env, journals, dialer, clock, log } = options
  const { enabled, reporters, audience } = config.sandboxUsage
  if (!enabled) return null
  const { clusterAccess, KubernetesApi, kubeconfigAccess } = await import('@plat/kubernetes')
  const [{ UsageBook }, { UsageReports }, { usageJournal }, { Reporters }, { mountUsage }] = await Promise.all([
    import('./book.ts'),
    import('./usage-reports.ts'),
    import('./events.ts'),
    import('./reporters.ts'),
    import('./routes.ts'),
  ])
  const { KUBECONFIG: kubeconfig = '' } = env
  const inCluster = kubeconfig === '' || env.KUBERNETES_SERVICE_HOST !== undefined
  const access = await (inCluster ? clusterAccess({ env }) : kubeconfigAccess(kubeconfig)).catch((error: unknown) => {
    throw new Error(`sandboxUsage: ${reasonOf(error)}`)
  })
  const journal = await journals.open(usageJournal(config))
  const failed = (error: unknown) => log.error({ error: reasonOf(error) }, 'the journal of sandbox usage has failed')
  const book = await UsageBook.open({ journal, onFault: failed, observer: options.pools?.of('reported_sessions') })
  const desk = new UsageReports({ ...options, book, replica: hostname() })
  const finished = desk.finish((error) =>
    log.error(
      { error: reasonOf(error) },
      'a report of sandbox usage could not be completed: it is retried at the next start, or when sent again',
    ),
  )
  const stopSweep = clock.every(SWEEP_EVERY_MS, () => void book.sweep(clock.now()).catch(failed))
  const api = new KubernetesApi({ access, dialer, clock })
  const people = new Reporters({ api, reporters, audience, clock })
  log.info({ server: access.server, reporters }, 'reports of sandbox usage are accepted')
  return {
    pages: (app) => mountUsage(app, { desk, reporters: people, clock }),
    async close() {
      stopSweep()
      book.close()
      await finished
      await journal.close()
    },
  }
}
