import { type BatchRequests, type Denial, isDenial } from '../../../call/index.ts'
import { ModelBody, readModelBody } from '../request.ts'

/**
 * A request that creates a batch. Policies, redaction, guards and approvers see it without its requests, each of which was judged as a call, but with
 * their number and digest.
 */
export class BatchBody extends ModelBody {
  readonly batch: BatchRequests
  /** Bytes for the provider; null: those of the body. */
  readonly #sent: Uint8Array | null

  constructor(body: ModelBody, batch: BatchRequests, sent: Uint8Array | null) {
    super(body)
    this.batch = batch
    this.#sent = sent
  }

  override get args(): Uint8Array {
    const { count, sha256, model } = this.batch
    return Buffer.from(JSON.stringify({ ...this.value, batch: { model, requests: count, sha256 } }))
  }

  get size(): number {
    return this.sent.byteLength
  }

  /** The request as the provider gets it. */
  get sent(): Uint8Array {
    return this.#sent ?? this.bytes
  }

  /** Returns the request with another body. */
  rewritten(bytes: Uint8Array): BatchBody | Denial {
    const read = readModelBody(bytes, this.dialect)
    return isDenial(read) ? read : new BatchBody(read, this.batch, this.#sent)
  }
}
