import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { rfc3339 } from '@plat/core'
import {
  coveredBy,
  type HoldKeeper,
  type LedgerSegment,
  LedgerSequence,
  leave,
  openCallsOf,
  readSegmentLine,
  removeLeftovers,
  type StoredCheckpoint,
} from '@plat/ledger'
import { HeldSegments } from './held.ts'
import { createRetentionMetrics, type RetentionMetrics } from './metrics.ts'
import type { RetentionOptions } from './options.ts'
import { CONSUMERS, type Wait } from './waits.ts'

const DAY_MS = 86_400_000
/** A younger segment never leaves: saved totals may still refer to its records. */
const LEAST_AGE_MS = 600_000

/** A segment that is here, and the size of its file. */
interface Here {
  readonly segment: LedgerSegment
  readonly bytes: number
}

/** A pass over the segments, and what it counts. */
interface Pass {
  readonly state: { held: number; readonly waiting: Map<Wait, number> }
  readonly signal: AbortSignal
}

/**
 * Lets sealed segments leave, the oldest first. One leaves only when a signed checkpoint covers it, every consumer has its records, no call of it is
 * open, nothing holds it, and its copy was read back. The first one that waits ends the pass; held and damaged ones are passed over.
 */
export class Leaver {
  readonly #options: RetentionOptions
  readonly #keeper: Pick<HoldKeeper, 'exclusively'>
  readonly #held: HeldSegments
  readonly #metrics: RetentionMetrics
  readonly #damaged = new Set<number>()

  constructor(options: RetentionOptions, keeper: Pick<HoldKeeper, 'exclusively'>) {
    this.#options = options
    this.#keeper = keeper
    this.#held = new HeldSegments(options.config.auditPath, options.evidence)
    this.#metrics = createRetentionMetrics(options.metrics, options.tenant)
  }

  /** Lets all segments leave that may. Rejects with the first failure. */
  async run(signal: AbortSignal): Promise<void> {
    const { auditPath, auditRetention } = this.#options.config
    const state = { held: 0, waiting: new Map<Wait, number>() }
    let here: readonly Here[] = []
    try {
      const listed = await segmentsOf(auditPath)
      here = await sizesOf(auditPath, listed)
      await removeLeftovers({ ...this.#options, ledgerPath: auditPath, files: null }, listed)
      if (auditRetention.archive !== 'none') here = await this.#pass(here, listed, { state, signal })
    } catch (error) {
      if (!signal.aborted) this.#metrics.failed()
      throw error
    } finally {
      this.#metrics.here({ ...state, ...this.#sumsOf(here) })
    }
  }

  /** Returns the segments that stay. */
  async #pass(
    here: readonly Here[],
    listed: readonly LedgerSegment[],
    { state, signal }: Pass,
  ): Promise<readonly Here[]> {
    await this.#held.load(listed)
    const checkpoint = await this.#options.checkpoints.last(false)
    const open = await openCalls(this.#options.config.auditPath)
    let stay = here
    for (const [index, one] of here.entries()) {
      if (signal.aborted || !this.#isDue(one, stay)) break
      const wait = this.#waitOf(one, checkpoint, open)
      if (wait !== null) {
        state.waiting.set(wait, here.slice(index).filter((later) => this.#isDue(later, stay)).length)
        break
      }
      const reason = await this.#held.reasonToStay(one.segment, signal)
      if (signal.aborted) break
      if (reason === 'held') state.held++
      else if (reason !== null) {
        state.waiting.set('repair', (state.waiting.get('repair') ?? 0) + 1)
        this.#noteDamage(one.segment, reason.problem)
      } else if (checkpoint !== null) {
        const archive = await this.#archive(one.segment)
        // Copying takes time: it may be held by now. A hold that is made from here on is made after the segment left.
        const hasLeft = await this.#keeper.exclusively(async () => {
          await this.#held.load(listed)
          if ((await this.#held.reasonToStay(one.segment, signal)) !== null || signal.aborted) return false
          await this.#leave(one.segment, checkpoint, archive)
          return true
        })
        if (hasLeft) stay = stay.filter((other) => other !== one)
        else if (!signal.aborted) state.held++
      }
    }
    return stay
  }

  #isDue({ segment }: Here, stay: readonly Here[]): boolean {
    const { days, bytes } = limitsOf(this.#options)
    const age = this.#options.clock.now() - Date.parse(segment.to)
    if (age < LEAST_AGE_MS) return false
    return (days > 0 && age > days * DAY_MS) || (bytes > 0 && sum(stay) > bytes)
  }

  #waitOf({ segment }: Here, checkpoint: StoredCheckpoint | null, open: readonly number[]): Wait | null {
    const { received, checkpoints } = this.#options
    if (checkpoint === null || coveredBy(checkpoint, checkpoints.keys()) < segment.last) return 'checkpoint'
    const consumer = CONSUMERS.find((name) => received[name]() < segment.last)
    if (consumer !== undefined) return consumer
    return open.some((seq) => seq >= segment.first && seq <= segment.last) ? 'open calls' : null
  }

  /** Returns where the copy of a segment is; null when copies are not kept. */
  async #archive({ file, record }: LedgerSegment): Promise<string | null> {
    const { config, archive } = this.#options
    const name = `${readSegmentLine(Buffer.from(record))?.ledgerId}/${file ?? ''}`
    return archive === null ? null : await archive.put(join(dirname(config.auditPath), file ?? ''), name)
  }

  async #leave(segment: LedgerSegment, checkpoint: StoredCheckpoint, where: string | null): Promise<void> {
    const { config, ledger, list, clock, log } = this.#options
    const path = config.auditPath
    const { first, last, record } = segment
    const sealed = readSegmentLine(Buffer.from(record))
    const what = { first, last, head: sealed?.place.hash, ...(where !== null && { archive: where }) }
    await ledger.append({ kind: 'admin', action: 'segment.left', by: 'gateway', ...what })
    const departure = { archive: where, checkpoint: checkpoint.text, left: rfc3339(clock.now()) }
    await leave({ ledgerPath: path, list, files: null }, segment, departure)
    this.#held.forget(segment)
    this.#metrics.left(where === null ? 'deleted' : 'archived')
    log.info({ path, ...what }, 'a sealed segment was removed from the audit ledger')
  }

  #noteDamage({ first, last }: LedgerSegment, problem: string): void {
    if (this.#damaged.has(first)) return
    this.#damaged.add(first)
    this.#metrics.failed()
    const { log, config } = this.#options
    log.error(
      { path: config.auditPath, first, last, problem },
      'a sealed segment of the audit ledger is damaged and stays: restore it from a copy',
    )
  }

  #sumsOf(here: readonly Here[]) {
    const [oldest] = here
    const age = oldest === undefined ? 0 : this.#options.clock.now() - Date.parse(oldest.segment.from)
    return { segments: here.length, bytes: sum(here), oldestSeconds: Math.max(0, Math.round(age / 1000)) }
  }
}

/** Age and size from which segments leave: of the tenant, or else of all. */
function limitsOf({ config: { auditRetention }, tenant = '' }: RetentionOptions): { days: number; bytes: number } {
  const { days, bytes, tenants = {} } = auditRetention
  const own = Object.hasOwn(tenants, tenant) ? tenants[tenant] : undefined
  return { days: own?.days ?? days, bytes: own?.bytes ?? bytes }
}

async function segmentsOf(path: string): Promise<readonly LedgerSegment[]> {
  await using sequence = await LedgerSequence.open(path)
  return sequence.segments
}

/** Returns the segments that are here, except those that were copied back. */
async function sizesOf(path: string, segments: readonly LedgerSegment[]): Promise<readonly Here[]> {
  const here: Here[] = []
  for (const segment of segments) {
    if (segment.file === null || segment.left !== null) continue
    const isCompressed = segment.file.endsWith('.zst')
    here.push({ segment, bytes: isCompressed ? (await stat(join(dirname(path), segment.file))).size : segment.bytes })
  }
  return here
}

function sum(here: readonly Here[]): number {
  return here.reduce((total, { bytes }) => total + bytes, 0)
}

/**
 * Returns the intents that had no outcome when the last segment was sealed, which a start needs. `open` records that name them are in that segment: it
 * cannot leave before those intents, since the first segment that has to wait ends the pass.
 */
async function openCalls(path: string): Promise<readonly number[]> {
  await using sequence = await LedgerSequence.open(path)
  const record = readSegmentLine(Buffer.from((await sequence.lastSealed())?.record ?? ''))
  return record === null ? [] : await openCallsOf(record, sequence)
}
