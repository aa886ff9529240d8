import { type Clock, reasonOf, rfc3339Micros } from '@plat/core'
import type { Signer } from '@plat/keys'
import {
  type FollowedSegment,
  followSegment,
  type Ledger,
  readSegment,
  type Segment,
  type SegmentReceipt,
  type StatementKeys,
  signSegmentReceipt,
} from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Stored } from './positions.ts'
import type { EdgeStore } from './store.ts'

/** Why a segment is refused. */
export const REASONS = ['malformed', 'size', 'edge', 'signature', 'chain', 'gap', 'fork'] as const
export type RefusalReason = (typeof REASONS)[number]

/** What becomes of a segment: `duplicate`: all of it is stored already; `failed`: it could not be stored, and may come again. */
export const RESULTS = ['taken', 'duplicate', 'refused', 'failed'] as const

/** What the collector counts. */
export interface CollectorMetrics {
  segment(result: (typeof RESULTS)[number]): void
  refused(reason: RefusalReason): void
  /** The last record of this edge that is stored; -1: none. */
  edgeSeq(edge: string, seq: number): void
}

/** An edge that may forward. */
export interface KnownEdge {
  readonly keys: StatementKeys
  readonly store: EdgeStore
}

export interface CollectorParts {
  /** `auditCollector.id` */
  readonly id: string
  readonly edges: ReadonlyMap<string, KnownEdge>
  readonly maxSegmentBytes: number
  /** Signs receipts, now. */
  readonly signer: () => Promise<Signer>
  /** The collector's own: it tells where the ledger of each edge stood. */
  readonly ledger: Pick<Ledger, 'append'>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: CollectorMetrics
}

export type SegmentResult =
  | { readonly kind: 'receipt'; readonly text: string; readonly receipt: SegmentReceipt }
  /** Bytes of the segment are missing: somebody is copying it, or cut it. */
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'refused'; readonly reason: RefusalReason; readonly message: string }

/**
 * Takes segments of edges (docs/spec/gateway.md, `auditCollector`). A segment is stored when it is signed by its edge, when its chain holds, and
 * when it goes on where the stored ledger of the edge ends; then, and not before, a receipt says so.
 */
export class Collector {
  readonly #parts: CollectorParts
  /** The segment of each edge that is being taken: one at a time. */
  readonly #busy = new Map<string, Promise<unknown>>()
  /** The fork of each edge that was recorded last: an edge that goes on asking leaves no second record. */
  readonly #forks = new Map<string, string>()

  constructor(parts: CollectorParts) {
    this.#parts = parts
    for (const [id, { store }] of parts.edges) parts.metrics.edgeSeq(id, store.stored.upTo)
  }

  /** Rejects when it cannot be stored, recorded or signed for: nothing is acknowledged then. */
  async take(bytes: Buffer): Promise<SegmentResult> {
    const { metrics, log } = this.#parts
    try {
      const taken = await this.#take(bytes)
      if (taken.kind === 'refused') {
        metrics.segment('refused')
        metrics.refused(taken.reason)
        log.warn({ reason: taken.reason, problem: taken.message }, 'a segment of an edge was refused')
      }
      return taken
    } catch (error) {
      metrics.segment('failed')
      log.error({ error: reasonOf(error) }, 'a segment of an edge could not be taken')
      throw error
    }
  }

  async #take(bytes: Buffer): Promise<SegmentResult> {
    const { edges, maxSegmentBytes } = this.#parts
    if (bytes.length > maxSegmentBytes) {
      return refused(
        'size',
        `the segment has ${bytes.length} bytes; auditCollector.maxSegmentBytes is ${maxSegmentBytes}`,
      )
    }
    const segment = readSegment(bytes)
    if (segment === 'incomplete') return { kind: 'incomplete' }
    if (segment === 'malformed')
      return refused('malformed', 'it is no segment: a seal, and behind it the lines that it counts')
    const { edge } = segment.seal
    const known = edges.get(edge)
    if (known === undefined) return refused('edge', `edge ${edge} is not in auditCollector.edges`)
    if (!segment.statement.isSignedBy(known.keys)) {
      return refused(
        'signature',
        `the seal is not signed by a key of auditCollector.edges[].publicKeyFiles of edge ${edge}`,
      )
    }
    const before = this.#busy.get(edge) ?? Promise.resolve()
    const mine = before.catch(() => {}).then(() => this.#store(segment, known.store))
    this.#busy.set(edge, mine)
    return await mine
  }

  async #store(segment: Segment, store: EdgeStore): Promise<SegmentResult> {
    const { seal } = segment
    const { stored } = store
    const { edge, ledgerId, from, to, head } = seal
    if (stored.upTo >= 0 && stored.ledgerId !== ledgerId) {
      return this.#forked(segment, `the stored ledger is ${stored.ledgerId}, and this is one of ${ledgerId}`)
    }
    if (from > stored.upTo + 1) {
      return to < from
        ? this.#answer(segment, stored)
        : refused('gap', `edge ${edge}: record ${stored.upTo + 1} comes next, and the segment begins with ${from}`)
    }
    const followed = followSegment(segment, stored.upTo)
    if (typeof followed === 'string') return refused('chain', `edge ${edge}, records ${from} to ${to}: ${followed}`)
    const fork = await forkOf(segment, followed, store)
    if (fork !== null) return this.#forked(segment, fork)
    const { metrics, ledger } = this.#parts
    if (to > stored.upTo) {
      await store.append(followed.after, { ledgerId, upTo: to, head }, async () => {
        await ledger.append({ kind: 'anchor', edge, ledgerId, upTo: to, head })
      })
      metrics.edgeSeq(edge, to)
      metrics.segment('taken')
    } else if (to >= from) {
      metrics.segment('duplicate')
    }
    return this.#answer(segment, store.stored)
  }

  async #answer({ seal: { edge, ledgerId }, sealId }: Segment, { upTo, head }: Stored): Promise<SegmentResult> {
    const { id, signer, clock } = this.#parts
    const at = rfc3339Micros(clock.now())
    const receipt = { collector: id, edge, ledgerId, upTo, head, seal: sealId, at }
    return { kind: 'receipt', text: await signSegmentReceipt(await signer(), receipt), receipt }
  }

  /** Two histories of one edge: somebody must look. */
  async #forked({ seal: { edge, ledgerId, from, to } }: Segment, what: string): Promise<SegmentResult> {
    if (this.#forks.get(edge) !== what) {
      await this.#parts.ledger.append({ kind: 'alert', reason: `fork: ${what}`, edge, ledgerId, from, upTo: to })
      this.#forks.set(edge, what)
    }
    return refused('fork', `edge ${edge}, records ${from} to ${to}: ${what}`)
  }
}

/** Null: where the segment and the stored ledger meet they say the same. */
async function forkOf({ seal }: Segment, followed: FollowedSegment, store: EdgeStore): Promise<string | null> {
  const { upTo, head } = store.stored
  if (followed.hash !== null) {
    return followed.hash === head ? null : `a second history goes on after record ${upTo}`
  }
  // It ends before the stored ledger does.
  const meets = seal.to < 0 || (await store.hashOf(seal.to)) === seal.head
  return meets ? null : `the stored record ${seal.to} is another one`
}

function refused(reason: RefusalReason, message: string): SegmentResult {
  return { kind: 'refused', reason, message }
}
