import { Backoff, type Clock, type Ids, type PoolObservers, poolTable, type SharedPool, watchedPool } from '@plat/core'
import type { Log } from '@plat/process'
import type { Collector, Posted } from './post.ts'

/** Maximum size of queued spans, in characters. */
export const QUEUE_MAX_BYTES = poolTable.span_bytes.total
/** Maximum size of a request, in bytes, except for a single larger span: collectors refuse large requests. */
const BATCH_MAX_BYTES = 4 * 1024 * 1024
/** Attempts to send the same spans before they are dropped. */
export const TRIES = 5
/** Initial backoff, doubled after each further failure, in milliseconds. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30_000
/** Maximum time for exports at shutdown, in milliseconds. */
const LAST_WORDS_MS = 2_000

export interface ExporterMetrics {
  exported(spans: number): void
  /** Dropped because the queue was full. */
  dropped(spans: number): void
  /** Refused by the collector, or dropped after failures. */
  failed(spans: number): void
  queued(spans: number): void
}

export interface ExporterOptions {
  readonly config: {
    readonly maxQueueSize: number
    readonly maxExportBatchSize: number
    readonly exportIntervalMillis: number
  }
  readonly collector: Pick<Collector, 'post'>
  /** Text around the spans of a request. */
  readonly envelope: { readonly before: string; readonly behind: string }
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly log: Log
  readonly metrics: ExporterMetrics
  readonly pools?: PoolObservers<'spans' | 'span_bytes'> | undefined
}

interface Queued {
  readonly span: string
  readonly agent: string
}

/** Sends spans to a collector in batches, independently of their calls; drops spans when the queue is full. */
export class Exporter {
  readonly #options: ExporterOptions
  readonly #backoff: Backoff
  readonly #queue: Queued[] = []
  readonly #spans: SharedPool
  readonly #bytes: SharedPool
  readonly #stop = new AbortController()
  readonly #running: Promise<void>
  #failing = false
  #isOpen = true
  /** Current pause; `early`: a full batch may end it. */
  #pause: { readonly end: () => void; readonly early: boolean } | null = null

  constructor(options: ExporterOptions) {
    this.#options = options
    this.#backoff = new Backoff({ firstMs: FIRST_PAUSE_MS, maxMs: LONGEST_PAUSE_MS, ids: options.ids })
    const { config, pools } = options
    const total = config.maxQueueSize
    const shares = [Math.ceil(total / 4)]
    this.#spans = watchedPool({ name: 'spans', total, shares, observer: pools?.of('spans') })
    this.#bytes = watchedPool({ name: 'span_bytes', observer: pools?.of('span_bytes') })
    this.#running = this.#run()
  }

  /** Queues a span of a call of this agent, encoded as JSON. */
  add(span: string, agent: string): void {
    const { config, metrics } = this.#options
    if (!this.#isOpen || !this.#hasRoom(span, agent)) {
      metrics.dropped(1)
      return
    }
    this.#queue.push({ span, agent })
    metrics.queued(this.#queue.length)
    if (this.#queue.length >= config.maxExportBatchSize && this.#pause?.early === true) this.#pause.end()
  }

  #hasRoom(span: string, agent: string): boolean {
    if (this.#spans.acquire(agent) !== null) return false
    if (this.#bytes.acquire(agent, span.length) === null) return true
    this.#spans.release(agent)
    return false
  }

  /** Sends remaining spans while the collector accepts them. */
  async close(): Promise<void> {
    this.#isOpen = false
    this.#pause?.end()
    const late = Promise.withResolvers<void>()
    const cancel = this.#options.clock.after(LAST_WORDS_MS, late.resolve)
    await Promise.race([this.#running, late.promise])
    cancel()
    this.#stop.abort()
  }

  async #run(): Promise<void> {
    const { config } = this.#options
    do {
      await this.#rest(config.exportIntervalMillis, true)
      while (this.#queue.length > 0 && !this.#stop.signal.aborted) await this.#deliver(this.#take())
    } while (this.#isOpen)
  }

  #rest(ms: number, early: boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const end = () => {
      cancel()
      this.#pause = null
      resolve()
    }
    const cancel = this.#options.clock.after(ms, end)
    this.#pause = { end, early }
    return promise
  }

  /** Takes the spans of the next request, at least one. */
  #take(): readonly string[] {
    const { config, metrics } = this.#options
    let count = 0
    let bytes = 0
    for (const { span, agent } of this.#queue.slice(0, config.maxExportBatchSize)) {
      if (count > 0 && bytes + span.length > BATCH_MAX_BYTES) break
      count++
      bytes += span.length
      this.#spans.release(agent)
      this.#bytes.release(agent, span.length)
    }
    const batch = this.#queue.splice(0, count).map(({ span }) => span)
    metrics.queued(this.#queue.length)
    return batch
  }

  async #deliver(batch: readonly string[]): Promise<void> {
    const { collector, envelope, metrics } = this.#options
    const body = `${envelope.before}${batch.join(',')}${envelope.behind}`
    for (let tries = 1; ; tries++) {
      const posted = await collector.post(body, this.#stop.signal)
      if (posted.kind === 'taken') return this.#accepted(batch.length, posted.rejected)
      this.#report(posted)
      if (posted.kind === 'refused' || tries >= TRIES || !this.#isOpen) {
        metrics.failed(batch.length)
        return
      }
      await this.#rest(Math.max(this.#backoff.pauseMs(tries - 1), posted.retryAfterMs), false)
    }
  }

  #accepted(spans: number, rejected: number): void {
    const { metrics, log } = this.#options
    const lost = Math.min(spans, rejected)
    if (spans > lost) metrics.exported(spans - lost)
    if (lost > 0) {
      metrics.failed(lost)
      log.warn({ spans: lost }, 'the collector rejected some spans of a request')
    }
    if (this.#failing) log.info({}, 'spans are exported again')
    this.#failing = false
  }

  /** Logs only the first of consecutive failures. */
  #report({ reason }: Exclude<Posted, { kind: 'taken' }>): void {
    if (!this.#failing) this.#options.log.warn({ reason }, 'spans cannot be exported')
    this.#failing = true
  }
}
