import { type Clock, type Ids, reasonOf, rfc3339 } from '@plat/core'
import { LedgerReader, type ReadLine } from '@plat/ledger'
import type { Log } from '@plat/process'
import { SinkBackoff } from './backoff.ts'
import { batchBytesOf, type SinkConfig } from './config.ts'
import { type DeliveredPosition, readCursor, writeCursor } from './cursor.ts'
import { type DeadLetter, DeadLetters } from './dead-letters.ts'
import type { SinkMetrics } from './metrics.ts'
import type { Delivery, Item, Receiver } from './receivers/receiver.ts'

/** Refusals of a single record, with backoff between, before it is a dead letter: receivers also refuse for temporary reasons. */
const REFUSALS = 3
/** Maximum time for deliveries at shutdown, in milliseconds. */
const LAST_WORDS_MS = 2_000

export interface SinkParts {
  readonly config: SinkConfig
  readonly receiver: Receiver
  readonly auditPath: string
  /** Folder of cursors, and default folder of dead letters. */
  readonly dir: string
  /** The last durable record of the ledger. */
  readonly head: () => { readonly seq: number }
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly log: Log
  readonly metrics: SinkMetrics
}

export interface SinkState {
  readonly name: string
  /** Records of the ledger that wait for delivery. */
  readonly lag: number
  /** The last delivery failed; it is repeated. */
  readonly isFailing: boolean
}

/**
 * Streams the ledger to one receiver, in order and from its cursor. The cursor passes a record only when the receiver or the dead-letter
 * file has it: after a crash the last batch may be repeated.
 */
export class Sink {
  readonly #parts: SinkParts
  readonly #cursor: string
  readonly #reader: LedgerReader
  readonly #deadLetters: DeadLetters
  readonly #backoff: SinkBackoff
  /** The last record that the cursor covers. */
  #done: number
  /** Result that is not yet on disk: dead letters to write, and then the new cursor. */
  #owed: { readonly letters: DeadLetter[]; readonly last: ReadLine; readonly delivered: number } | null = null
  #refusals = 0
  #phase: 'running' | 'closing' | 'closed' = 'running'
  #wake: () => void = () => {}
  #running: Promise<void> = Promise.resolve()

  private constructor(parts: SinkParts, reader: LedgerReader, place: DeliveredPosition | null) {
    const { config, dir, ids } = parts
    this.#parts = parts
    this.#reader = reader
    this.#cursor = cursorOf(parts)
    this.#deadLetters = new DeadLetters(
      config.deadLetterPath || `${dir}/${config.name}.deadletter.jsonl`,
      config.deadLetterMaxBytes,
    )
    this.#backoff = new SinkBackoff(config.batchSize, ids)
    this.#done = place?.seq ?? -1
  }

  /** Rejects if the cursor cannot be read, or names a record that the ledger does not hold. */
  static async open(parts: SinkParts): Promise<Sink> {
    const path = cursorOf(parts)
    try {
      const place = await readCursor(path)
      return new Sink(parts, await LedgerReader.open(parts.auditPath, place), place)
    } catch (error) {
      const fix = `was the ledger replaced on purpose, remove ${path} to deliver all of it again`
      throw new Error(`auditSinks "${parts.config.name}": ${reasonOf(error)}; ${fix}`)
    }
  }

  start(): void {
    this.tellLag()
    this.#running = this.#run()
  }

  /** The last record that the receiver or the dead-letter file has; -1 for none. */
  get delivered(): number {
    return this.#done
  }

  /** Records that wait, and whether the last delivery failed. */
  get state(): SinkState {
    const { config, head } = this.#parts
    return { name: config.name, lag: Math.max(0, head().seq - this.#done), isFailing: this.#backoff.isFailing }
  }

  tellLag(): void {
    const { name, lag } = this.state
    this.#parts.metrics.lag(name, lag)
  }

  /** Delivers remaining records while the receiver accepts them, and stops. */
  async close(): Promise<void> {
    this.#phase = 'closing'
    this.#wake()
    const late = Promise.withResolvers<void>()
    const cancel = this.#parts.clock.after(LAST_WORDS_MS, late.resolve)
    await Promise.race([this.#running, late.promise])
    cancel()
    this.#phase = 'closed'
    await this.#reader.close()
  }

  async #run(): Promise<void> {
    for (;;) {
      const pauseMs = await this.#turn()
      if (this.#phase === 'closed' || (this.#phase === 'closing' && pauseMs > 0 && this.#isIdle)) return
      if (pauseMs > 0 && this.#phase === 'running') await this.#rest(pauseMs)
      // An unreachable receiver would not get the remaining records either.
      if (this.#phase !== 'running' && this.#backoff.isFailing) return
    }
  }

  /** All records are delivered, also those written during the last delivery; or the receiver is unreachable. */
  get #isIdle(): boolean {
    return this.#backoff.isFailing || this.#done >= this.#parts.head().seq
  }

  #rest(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#parts.clock.after(ms, resolve)
    this.#wake = () => {
      cancel()
      resolve()
    }
    return promise
  }

  /** Makes one delivery. Returns the milliseconds until the next one; 0 if there is more. */
  async #turn(): Promise<number> {
    const { config, head } = this.#parts
    try {
      if (this.#owed !== null) return await this.#settle()
      const upTo = head().seq
      const lines = await this.#reader.next({ upTo, count: this.#backoff.limit, bytes: batchBytesOf(config) })
      if (lines.length === 0) return config.pollIntervalMillis
      const batch = this.#fitting(lines)
      const delivery = await this.#parts.receiver.deliver(batch)
      const pauseMs = await this.#judge(delivery, batch)
      return this.#done === upTo ? config.pollIntervalMillis : pauseMs
    } catch (error) {
      return this.#failed(reasonOf(error))
    }
  }

  /** Returns as many lines as fit into one delivery, at least one. */
  #fitting(lines: readonly ReadLine[]): readonly (Item & { readonly record: ReadLine })[] {
    const { config, receiver } = this.#parts
    const batch: (Item & { readonly record: ReadLine })[] = []
    let left = batchBytesOf(config)
    for (const record of lines) {
      const text = receiver.write(record)
      left -= Buffer.byteLength(text)
      if (left < 0 && batch.length > 0) break
      batch.push({ record, text })
    }
    return batch
  }

  async #judge(delivery: Delivery, batch: readonly { readonly record: ReadLine }[]): Promise<number> {
    const { clock } = this.#parts
    const at = rfc3339(clock.now())
    if (delivery.kind === 'failed') return this.#failed(delivery.reason, delivery.retryAfterMs)
    if (delivery.kind === 'accepted') {
      const { count = batch.length, refused = [] } = delivery
      const letters = refused.map(({ item, reason }) => ({ record: item.record, reason, at }))
      return await this.#passed(batch[count - 1]?.record, letters, count - letters.length)
    }
    if (batch.length > 1) {
      this.#backoff.narrow(batch.length)
      this.#parts.metrics.failed(this.#parts.config.name)
      return 0
    }
    if (++this.#refusals < REFUSALS) return this.#failed(delivery.reason)
    const record = batch[0]?.record
    return await this.#passed(record, record === undefined ? [] : [{ record, reason: delivery.reason, at }], 0)
  }

  async #passed(last: ReadLine | undefined, letters: DeadLetter[], delivered: number): Promise<number> {
    this.#refusals = 0
    if (last === undefined) throw new Error('the receiver accepted no record')
    this.#owed = { letters, last, delivered }
    return await this.#settle()
  }

  /** Writes the result of a batch to disk. After a failure it is repeated without another delivery. */
  async #settle(): Promise<number> {
    const { config, metrics, log } = this.#parts
    const owed = this.#owed
    if (owed === null || this.#phase === 'closed') return 0
    for (let letter = owed.letters[0]; letter !== undefined; letter = owed.letters[0]) {
      if (!(await this.#deadLetters.add(letter)))
        return this.#failed(`${this.#deadLetters.path} is full: look into it and move it away`)
      owed.letters.shift()
      metrics.deadLettered(config.name)
      const { reason, record } = letter
      log.error(
        { sink: config.name, seq: record.seq, reason, path: this.#deadLetters.path },
        'audit record moved to the dead letters',
      )
    }
    await writeCursor(this.#cursor, owed.last)
    this.#owed = null
    this.#reader.take(owed.last)
    this.#done = owed.last.seq
    this.tellLag()
    if (owed.delivered > 0) metrics.delivered(config.name, owed.delivered)
    if (this.#backoff.isFailing) log.info({ sink: config.name, seq: this.#done }, 'audit sink delivers again')
    this.#backoff.succeeded()
    return 0
  }

  #failed(reason: string, retryAfterMs = 0): number {
    const { config, log, metrics } = this.#parts
    if (this.#phase === 'closed') return 0
    metrics.failed(config.name)
    if (!this.#backoff.isFailing) log.warn({ sink: config.name, reason }, 'audit sink delivery failed, will retry')
    return Math.max(this.#backoff.failed(), retryAfterMs)
  }
}

function cursorOf({ config, dir }: SinkParts): string {
  return `${dir}/${config.name}.cursor.json`
}
