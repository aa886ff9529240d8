import { hash } from 'node:crypto'
import { type Clock, type Ids, rfc3339 } from '@plat/core'
import type { PublicKey, Signer } from '@plat/keys'
import {
  ArchivedError,
  type EvidenceHead,
  gatherEvidence,
  type LedgerMoment,
  type StoredCheckpoint,
  sealEvidence,
  verifyEvidence,
} from '@plat/ledger'
import { AdminError } from '../../admin/index.ts'
import type { EvidenceStore } from './store.ts'

/** Members of a record for the selection. */
export const ABOUT = ['namespace', 'agent', 'session', 'call', 'kind'] as const

/** Selection of records. */
export interface EvidenceRequest {
  readonly about: Readonly<Record<string, string>>
  readonly from: LedgerMoment | null
  readonly to: LedgerMoment | null
  readonly by: string
}

export interface MakerParts {
  readonly auditPath: string
  readonly maxBytes: number
  readonly checkpoints: {
    signer(): Promise<Signer>
    keys(): readonly PublicKey[]
    last(fresh: boolean): Promise<StoredCheckpoint | null>
  }
  readonly store: EvidenceStore
  readonly clock: Clock
  readonly ids: Ids
}

export interface Made {
  readonly head: EvidenceHead
  readonly sha256: string
  readonly bytes: number
}

/** Makes evidence objects one at a time: each is built in memory. */
export class EvidenceMaker {
  readonly #parts: MakerParts
  #running: Promise<unknown> = Promise.resolve()

  constructor(parts: MakerParts) {
    this.#parts = parts
  }

  /** Resolves when durable. Rejects with `AdminError` if no record matches, and with other errors. */
  make(request: EvidenceRequest): Promise<Made> {
    const made = this.#running.then(() => this.#make(request))
    this.#running = made.catch(() => {})
    return made
  }

  async #make({ about, from, to, by }: EvidenceRequest): Promise<Made> {
    const { auditPath, maxBytes, checkpoints, store, clock, ids } = this.#parts
    const signer = await checkpoints.signer().catch(() => {
      throw new AdminError('conflict', 'checkpoints are what proves evidence: set auditCheckpointKey')
    })
    const last = await checkpoints.last(true)
    if (last === null) throw new AdminError('state_unavailable', 'no checkpoint can be made now; see the log')
    const pairs = Object.entries(about)
    const gathering = gatherEvidence(auditPath, {
      from: from ?? 0,
      to,
      wants: (rec) => pairs.every(([name, value]) => rec[name] === value),
      checkpoint: last.rec,
      maxBytes,
    })
    const found = await gathering.catch((error: unknown) => {
      if (!(error instanceof ArchivedError)) throw error
      const or = error.segment.archive === null ? ';' : ', or'
      throw new AdminError('conflict', `${error.message}${or} request a range without them`)
    })
    if ('why' in found) throw found.why === 'none' ? NOTHING() : tooMuch(maxBytes, found.seq)
    const { lines, proofs, checkpoint, anchor } = found
    const head: EvidenceHead = {
      ...{ evidence: 1, id: ids.uuid(), at: rfc3339(clock.now()), by, ledgerId: ledgerIdOf(checkpoint), about },
      ...{ from: found.from, to: found.to, records: lines.length, checkpoint, anchor },
      keys: checkpoints.keys().map(({ kid, jwk }) => ({ ...jwk, kid })),
    }
    const bytes = await sealEvidence({ head, lines, proofs }, signer)
    if (bytes.length > maxBytes) throw tooMuch(maxBytes, found.to)
    const fault = await verifyEvidence(bytes, { keys: checkpoints.keys(), hmacKey: null, logKeys: null })
    // Verifies the object before it is stored.
    if (typeof fault === 'string') throw new Error(`the evidence would not hold: ${fault}`)
    await store.put(head.id, bytes)
    return { head, sha256: hash('sha256', bytes, 'hex'), bytes: bytes.length }
  }
}

const NOTHING = () => new AdminError('not_found', 'there are no such records up to the last checkpoint')

function tooMuch(maxBytes: number, seq: number): AdminError {
  const why = `the object would exceed the ${maxBytes} bytes of evidence.maxBytes at record ${seq}`
  return new AdminError('body_too_large', `${why}: request a smaller range by from and to`)
}

function ledgerIdOf({ jws }: Readonly<Record<string, unknown>>): string {
  const payload: unknown = JSON.parse(Buffer.from(String(jws).split('.')[1] ?? '', 'base64url').toString())
  return typeof payload === 'object' && payload !== null && 'ledgerId' in payload ? String(payload.ledgerId) : ''
}
