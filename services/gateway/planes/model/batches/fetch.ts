import { Readable } from 'node:stream'
import type { Ids } from '@plat/core'
import { type Call, type Denial, deny, type Reply } from '../../../call/index.ts'
import { type Plane, PlaneAround, type RunNested, type Sink } from '../../../pipeline/index.ts'
import type { UnreadRequest } from '../uploads/request.ts'
import { SpoolError, type SpoolFile } from '../uploads/spool.ts'
import type { FetchedFile } from './read.ts'

/** Reads files of callers at providers to the spool, each as a governed call with its own record. */
export class FileFetcher {
  readonly #plane: Plane
  readonly #run: RunNested
  readonly #ids: Pick<Ids, 'uuid'>

  constructor(plane: Plane, { run, ids }: { readonly run: RunNested; readonly ids: Pick<Ids, 'uuid'> }) {
    this.#plane = plane
    this.#run = run
    this.#ids = ids
  }

  async fetch({ arrival, identity, limits }: UnreadRequest, route: string, id: string): Promise<FetchedFile | Denial> {
    const file = await limits.spool.open(identity)
    if (file === null) return noRoom()
    arrival.whenOver?.(() => file.close())
    const { headers, remote, trace } = arrival.wire
    const path = `/llm/${route}/v1/files/${encodeURIComponent(id)}/content`
    const plane = new FetchPlane(this.#plane)
    const full = Promise.withResolvers<void>()
    const sink = new SpoolSink(file, { maxBytes: limits.maxUploadBytes, full: full.resolve })
    const call = this.#run({
      ...{ id: this.#ids.uuid(), identity, plane, sink, endsAtDrain: false },
      wire: {
        ...{ method: 'GET', path, query: '', headers: { ...headers }, remote, trace },
        body: Readable.from([]),
        note: undefined,
      },
    })
    void full.promise.then(() => call.stop('denied', noRoom()))
    const leave = () => call.stop('client', null)
    if (arrival.signal.aborted) leave()
    else arrival.signal.addEventListener('abort', leave)
    await call.ended
    arrival.signal.removeEventListener('abort', leave)
    if (plane.denial !== null) return plane.denial
    const fault = await sink.finish()
    if (fault !== null) return fault
    const { size } = file
    return { account: plane.account ?? '', read: () => file.read(0, size) }
  }
}

class FetchPlane extends PlaneAround {
  denial: Denial | null = null
  account: string | null = null

  override forward(
    call: Call<'identity' | 'target' | 'hold'>,
    head: 'unsent' | 'sent',
  ): Denial | Promise<Reply | Denial> {
    this.account = [...(call.facts.target.accounts ?? [])][0] ?? null
    return super.forward(call, head)
  }

  override keepAlive(): null {
    return null
  }

  override refuse(...[arrival, parsed, denial]: Parameters<Plane['refuse']>): ReturnType<Plane['refuse']> {
    this.denial = denial
    return super.refuse(arrival, parsed, denial)
  }

  override abort(): null {
    this.denial ??= deny('upstream_error', 'the file of the batch could not be read')
    return null
  }
}

/** Writes a response to the spool. */
class SpoolSink implements Sink {
  headSent = false
  readonly #file: SpoolFile
  readonly #limits: { readonly maxBytes: number; full(): void }
  #status = 0
  #isComplete = false
  #fault: Denial | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(file: SpoolFile, limits: { readonly maxBytes: number; full(): void }) {
    this.#file = file
    this.#limits = limits
  }

  reply({ status }: { readonly status: number }, _overheadMs: number, body: Uint8Array): void {
    this.headSent = true
    this.#status = status
    void this.write(body)
    this.#isComplete = true
  }

  open({ status }: { readonly status: number }): void {
    this.headSent = true
    this.#status = status
  }

  write(bytes: Uint8Array): Promise<void> {
    this.#writing = this.#writing.then(() => this.#append(bytes))
    return this.#writing
  }

  end(): void {
    this.#isComplete = true
  }

  tunnel(): null {
    return null
  }

  destroy(): void {}

  /** Resolves to the reason why the file was not read whole, or null. */
  async finish(): Promise<Denial | null> {
    await this.#writing
    if (this.#fault !== null) return this.#fault
    if (this.#status !== 200 || !this.#isComplete)
      return deny('upstream_error', 'the provider did not return the file of the batch')
    try {
      await this.#file.flush()
      return null
    } catch (error) {
      return unwritten(error)
    }
  }

  async #append(bytes: Uint8Array): Promise<void> {
    if (this.#fault !== null || this.#status !== 200) return
    try {
      const isTooLarge = this.#file.size + bytes.length > this.#limits.maxBytes
      if (isTooLarge || !(await this.#file.append(bytes))) this.#fault = noRoom()
    } catch (error) {
      this.#fault = unwritten(error)
    }
    if (this.#fault !== null) this.#limits.full()
  }
}

function unwritten(error: unknown): Denial {
  if (error instanceof SpoolError) return deny('state_unavailable', 'the file of the batch cannot be stored now')
  throw error
}

function noRoom(): Denial {
  return deny('overloaded', 'the file of the batch is too large, or uploads hold too many bytes; call again')
}
