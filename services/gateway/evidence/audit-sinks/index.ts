import { mkdir } from 'node:fs/promises'
import type { Clock, Ids } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import type { GatewayMetrics } from '../../metrics.ts'
import type { SinkConfig } from './config.ts'
import { createSinkMetrics } from './metrics.ts'
import { type Clouds, createReceiver } from './receivers/receivers.ts'
import { Sink, type SinkState } from './sink.ts'

/** Interval of lag updates, in milliseconds: it grows while a receiver is unreachable. */
const LAG_EVERY_MS = 1_000
/** Cursors and dead letters describe what agents did. */
const FOLDER_MODE = 0o700

export interface AuditSinksParts {
  readonly config: { readonly auditPath: string; readonly auditSinks: readonly SinkConfig[] }
  /** The last durable record of the ledger. */
  readonly head: () => { readonly seq: number }
  readonly dialer: Dialer
  readonly clouds: Clouds
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
}

export interface AuditSinks {
  /** The last record that every sink has delivered; infinite without sinks. */
  delivered(): number
  /** Each sink with its backlog. */
  states(): readonly SinkState[]
  close(): Promise<void>
}

/**
 * Streams the ledger to every sink of `auditSinks` (docs/spec/gateway.md). Each has its own cursor in `<auditPath>.sinks` and runs independently
 * of calls and of the others. Rejects if a cursor is not of this ledger.
 */
export async function startAuditSinks(parts: AuditSinksParts): Promise<AuditSinks> {
  const { config, clock } = parts
  const metrics = createSinkMetrics(parts.metrics)
  const dir = `${config.auditPath}.sinks`
  if (config.auditSinks.length > 0) await mkdir(dir, { recursive: true, mode: FOLDER_MODE })
  const sinks: Sink[] = []
  const closeAll = async () => void (await Promise.all(sinks.map((sink) => sink.close())))
  try {
    for (const one of config.auditSinks) {
      const { auditPath } = config
      sinks.push(
        await Sink.open({
          ...parts,
          auditPath,
          config: one,
          dir,
          receiver: createReceiver(one, parts),
          metrics,
        }),
      )
    }
  } catch (error) {
    await closeAll()
    throw error
  }
  for (const sink of sinks) sink.start()
  const stopLag = clock.every(LAG_EVERY_MS, () => {
    for (const sink of sinks) sink.tellLag()
  })
  return {
    delivered: () => Math.min(...sinks.map((sink) => sink.delivered)),
    states: () => sinks.map((sink) => sink.state),
    async close() {
      stopLag()
      await closeAll()
    },
  }
}
