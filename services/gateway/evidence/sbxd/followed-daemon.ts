import { isObject, reasonOf, Slices } from '@plat/core'
import { FollowedChain, type FollowedPosition, type FollowFault, type Look, type RecordPlace } from '@plat/ledger'
import { type DaemonClient, objectOf } from './client.ts'

/** Requests for lines in one look. */
const MAX_REQUESTS = 32
/** Lines that one look verifies again. */
const PAST_LINES = 1000
const LF = 0x0a

export interface FollowedDaemonOptions {
  readonly client: Pick<DaemonClient, 'request' | 'place'>
  /** Id of the gateway's ledger. */
  readonly ledgerId: string
  /** Last durable record of the gateway's ledger. */
  readonly head: () => RecordPlace
  /** Position to continue from; null at first. */
  readonly position: FollowedPosition | null
}

/** A record of the daemon's ledger, with its text. */
interface DaemonLine {
  readonly seq: number
  readonly hash: string
  readonly text: string
}

/** Has the daemon anchor the gateway's head in its ledger, and follows that ledger over HTTP. */
export class FollowedDaemon {
  readonly #options: FollowedDaemonOptions
  #position: FollowedPosition | null
  /** The last record that was verified again; null before the first. */
  #past: { readonly seq: number; readonly hash: string } | null = null

  constructor(options: FollowedDaemonOptions) {
    this.#options = options
    this.#position = options.position
  }

  get position(): FollowedPosition | null {
    return this.#position
  }

  anchored(): void {}

  /** Never rejects for what the daemon responds. */
  async look(): Promise<Look> {
    const fault = await this.#read().catch((error: unknown): FollowFault => {
      return { kind: 'unreadable', what: reasonOf(error) }
    })
    const { head = null, first = null } = this.#position ?? {}
    return { head, isSigned: false, isRestarted: false, first, fault, hasMore: false }
  }

  async #read(): Promise<FollowFault | null> {
    const { client, ledgerId, head } = this.#options
    const own = head()
    const anchor = { ledgerId, seq: own.seq, hash: own.hash }
    const reply = objectOf(await client.request('POST', '/v1/ledger/anchors', anchor))
    const { seq } = reply
    if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 0) {
      return { kind: 'unreadable', what: `${client.place} did not respond with the record of the anchor` }
    }
    return (await this.#advance(seq, anchor)) ?? (await this.#verifyPast())
  }

  /** Follows the ledger from the last record to the one that anchors the gateway's head. */
  async #advance(to: number, anchor: Anchor): Promise<FollowFault | null> {
    const known = this.#position
    if (known !== null && to <= known.head.seq) {
      return {
        kind: 'truncated',
        what: `record ${to} anchors the gateway's head, but record ${known.head.seq} was read before`,
      }
    }
    // The first line is the known record itself, so that a change of it is noticed.
    const chain = new FollowedChain(null, known !== null)
    let first = known?.first ?? null
    for (let requests = 0; (chain.head?.seq ?? -1) < to; requests++) {
      const from = chain.head === null ? (known?.head.seq ?? 0) : chain.head.seq + 1
      if (requests === MAX_REQUESTS) return this.#pause(first, chain.head)
      const lines = await this.#lines(from, chain)
      if (!Array.isArray(lines)) return lines
      const fault = faultOf(lines, { from, known: known?.head ?? null, to, anchor })
      if (fault !== null) return fault
      first ??= lines[0] ?? null
    }
    return this.#pause(first, chain.head)
  }

  /** Keeps the position; a ledger with more lines than one look reads is read on with the next one. */
  #pause(first: Place | null, head: Place | null): null {
    if (first === null || head === null) return null
    this.#position = { first: placeOf(first), head: placeOf(head), offset: 0, signed: null }
    return null
  }

  /** Verifies some of what was read before, from the beginning to the last record and then anew. */
  async #verifyPast(): Promise<FollowFault | null> {
    const position = this.#position
    if (position === null) return null
    const { first, head } = position
    const chain = new FollowedChain(this.#past, this.#past === null)
    const from = this.#past === null ? first.seq : this.#past.seq + 1
    if (from > head.seq) {
      this.#past = null
      return null
    }
    const lines = await this.#lines(from, chain, Math.min(PAST_LINES, head.seq - from + 1))
    if (!Array.isArray(lines)) return lines
    const changed = lines.find(({ seq, hash }) => [first, head].some((one) => one.seq === seq && one.hash !== hash))
    if (changed !== undefined || lines.length === 0) {
      return { kind: 'forked', what: `record ${changed?.seq ?? from} is not the one that was read before` }
    }
    this.#past = chain.head !== null && chain.head.seq < head.seq ? chain.head : null
    return null
  }

  async #lines(from: number, chain: FollowedChain, limit = 10_000): Promise<DaemonLine[] | FollowFault> {
    const bytes = await this.#options.client.request('GET', `/v1/ledger/lines?from=${from}&limit=${limit}`)
    const lines: DaemonLine[] = []
    const slices = new Slices()
    for (let start = 0; start < bytes.length && lines.length < limit; ) {
      const end = bytes.indexOf(LF, start)
      if (end === -1) break
      const line = chain.follow(bytes, start, end)
      if ('kind' in line) return line
      if (lines.length === 0 && line.seq !== from)
        return { kind: 'gap', what: `record ${line.seq} came instead of ${from}` }
      lines.push({ seq: line.seq, hash: line.hash, text: bytes.toString('utf8', start, end) })
      start = end + 1
      if (slices.isOver) await slices.next()
    }
    if (lines.length === 0) return { kind: 'truncated', what: `it ends before record ${from}` }
    return lines
  }
}

interface Anchor {
  readonly ledgerId: string
  readonly seq: number
  readonly hash: string
}

type Place = Pick<DaemonLine, 'seq' | 'hash'>

function placeOf({ seq, hash }: Place): Place {
  return { seq, hash }
}

interface Expected {
  readonly from: number
  readonly known: Place | null
  readonly to: number
  readonly anchor: Anchor
}

function faultOf(lines: readonly DaemonLine[], { from, known, to, anchor }: Expected): FollowFault | null {
  const [first] = lines
  if (known !== null && from === known.seq && first?.hash !== known.hash) {
    return { kind: 'forked', what: `record ${known.seq} is not the one that was read before` }
  }
  const anchoring = lines.find(({ seq }) => seq === to)
  if (anchoring === undefined || isAnchorOf(anchoring.text, anchor)) return null
  return { kind: 'unanchored', what: `record ${to} does not hold the head of the gateway's ledger` }
}

function isAnchorOf(text: string, { ledgerId, seq, hash }: Anchor): boolean {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return false
  }
  if (!isObject(value)) return false
  const content = isObject(value.entry) ? value.entry : value.rec
  const anchor = isObject(content) ? content.anchor : null
  return isObject(anchor) && anchor.ledgerId === ledgerId && anchor.seq === seq && anchor.hash === hash
}
