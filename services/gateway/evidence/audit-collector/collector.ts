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

/** Reasons to refuse a segment. */
export const REASONS = ['malformed', 'size', 'edge', 'signature', 'chain', 'gap', 'fork'] as const
export type RefusalReason = (typeof REASONS)[number]

/** Results of a segment: `duplicate`: stored already; `failed`: not stored, may be sent again. */
export const RESULTS = ['taken', 'duplicate', 'refused', 'failed'] as const

export interface CollectorMetrics {
  segment(result: (typeof RESULTS)[number]): void
  refused(reason: RefusalReason): void
  /** Number of the last stored record of this edge, or -1. */
  edgeSeq(edge: string, seq: number): void
}

/** An edge that may forward segments. */
export interface KnownEdge {
  readonly keys: StatementKeys
  readonly store: EdgeStore
}

export interface CollectorParts {
  readonly id: string
  readonly edges: ReadonlyMap<string, KnownEdge>
  readonly maxSegmentBytes: number
  /** Returns the current signer of receipts. */
  readonly signer: () => Promise<Signer>
  /** The collector's own ledger, for the positions of the edges' ledgers. */
  readonly ledger: Pick<Ledger, 'append'>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: CollectorMetrics
}

export type SegmentResult =
  | { readonly kind: 'receipt'; readonly text: string; readonly receipt: SegmentReceipt }
  /** The segment is truncated, or still being copied. */
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'refused'; readonly reason: RefusalReason; readonly message: string }

/**
 * Accepts segments of edges (docs/spec/gateway.md, `auditCollector`). A segment is stored if its edge has signed it, its chain is valid, and
 * it continues the stored ledger of the edge; only then a receipt is issued.
 */
export class Collector {
  readonly #parts: CollectorParts
  /** Pending segment of each edge: they are processed one at a time. */
  readonly #busy = new Map<string, Promise<unknown>>()
  /** The last recorded fork of each edge: retries leave no second record. */
  readonly #forks = new Map<string, string>()

  constructor(parts: CollectorParts) {
    this.#parts = parts
    for (const [id, { store }] of parts.edges) parts.metrics.edgeSeq(id, store.stored.upTo)
  }

  /** Rejects if the segment cannot be stored, recorded or signed for: then it is not acknowledged. */
  async take(bytes: Buffer): Promise<SegmentResult> {
    const { metrics, log } = this.#parts
    try {
      const result = await this.#take(bytes)
      if (result.kind === 'refused') {
        metrics.segment('refused')
        metrics.refused(result.reason)
        log.warn({ reason: result.reason, problem: result.message }, 'a segment of an edge was refused')
      }
      return result
    } catch (error) {
      metrics.segment('failed')
      log.error({ error: reasonOf(error) }, 'a segment of an edge could not be stored')
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
      return refused('malformed', 'not a segment: a seal, followed by the lines that it counts')
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

  /** Records two histories of one edge, for an operator to examine. */
  async #forked({ seal: { edge, ledgerId, from, to } }: Segment, what: string): Promise<SegmentResult> {
    if (this.#forks.get(edge) !== what) {
      await this.#parts.ledger.append({ kind: 'alert', reason: `fork: ${what}`, edge, ledgerId, from, upTo: to })
      this.#forks.set(edge, what)
    }
    return refused('fork', `edge ${edge}, records ${from} to ${to}: ${what}`)
  }
}

/** Returns null if the segment and the stored ledger agree where they overlap. */
async function forkOf({ seal }: Segment, followed: FollowedSegment, store: EdgeStore): Promise<string | null> {
  const { upTo, head } = store.stored
  if (followed.hash !== null) {
    return followed.hash === head ? null : `a second history goes on after record ${upTo}`
  }
  // The segment ends before the stored ledger does.
  const meets = seal.to < 0 || (await store.hashOf(seal.to)) === seal.head
  return meets ? null : `the stored record ${seal.to} is another one`
}

function refused(reason: RefusalReason, message: string): SegmentResult {
  return { kind: 'refused', reason, message }
}
