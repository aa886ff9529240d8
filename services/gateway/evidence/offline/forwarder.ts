import { peerFiles } from '@plat/config'
import { Backoff, type Clock, type Ids, readJsonObject, reasonOf, rfc3339Micros, withoutTrailing } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Signer } from '@plat/keys'
import { type SegmentSeal, sealIdOf, segmentBytes, signSeal } from '@plat/ledger'
import type { Log } from '@plat/process'
import { jurisdictionOf } from '@plat/resources/regions'
import type { CollectorContact } from './collector-contact.ts'
import type { OfflineConfig } from './config.ts'
import type { Spool, Spooled } from './spool.ts'

/** Maximum size of a collector's response, in bytes. */
const MAX_RESPONSE_BYTES = 64 * 1024

export interface ForwarderOptions {
  readonly config: OfflineConfig['forward']
  readonly edge: string
  readonly ledgerId: string
  readonly spool: Spool
  readonly contact: CollectorContact
  readonly signer: () => Promise<Signer>
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Called after a failed round. */
  readonly onError: () => void
}

/**
 * Forwards segments to the collector: each round queries its position, then sends missing segments in order. Failed rounds are followed
 * by an exponential backoff.
 */
export class Forwarder {
  readonly #options: ForwarderOptions
  readonly #url: string
  readonly #intervalMs: number
  readonly #backoff: Backoff
  #failures = 0
  #reported = ''
  #cancel: () => void = () => {}
  #round: Promise<void> | null = null
  #closed = false

  constructor(options: ForwarderOptions) {
    this.#options = options
    const { config, ids } = options
    this.#intervalMs = config.intervalSeconds * 1000
    const maxMs = Math.max(this.#intervalMs, config.maxBackoffSeconds * 1000)
    this.#backoff = new Backoff({ firstMs: this.#intervalMs, maxMs, ids })
    this.#url = `${withoutTrailing(config.url, '/')}/v1/audit/segments`
  }

  /** Starts the rounds, the first one at once. */
  start(): void {
    this.#round = this.#run().finally(() => {
      this.#round = null
      if (!this.#closed) this.#cancel = this.#options.clock.after(this.#pauseMs(), () => this.start())
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#cancel()
    await this.#round
  }

  #pauseMs(): number {
    return this.#failures === 0 ? this.#intervalMs : this.#backoff.pauseMs(this.#failures)
  }

  async #run(): Promise<void> {
    const { log, onError } = this.#options
    try {
      // An accepted segment is not sent again even without a valid receipt: the round continues, and fails at its end.
      let problem = await this.#ask()
      for (const segment of this.#options.spool.waiting()) {
        if (this.#closed) return
        problem = (await this.#forward(segment)) ?? problem
      }
      if (problem !== null) throw new Error(`the response of the collector is not valid: ${problem}`)
      if (this.#failures > 0) log.info({ url: this.#url }, 'segments are forwarded again')
      this.#failures = 0
      this.#reported = ''
    } catch (error) {
      this.#failures++
      onError()
      const problem = reasonOf(error)
      if (problem !== this.#reported) log.error({ url: this.#url, problem }, 'segments cannot be forwarded')
      this.#reported = problem
    }
  }

  /** Sends an empty seal: the response has the position of the collector. */
  async #ask(): Promise<string | null> {
    const { edge, ledgerId, spool, signer, clock } = this.#options
    const { seq, hash } = spool.sealed
    const at = rfc3339Micros(clock.now())
    const seal: SegmentSeal = {
      edge,
      ledgerId,
      from: seq + 1,
      to: seq,
      prev: hash,
      head: hash,
      bytes: 0,
      since: at,
      at,
    }
    const text = await signSeal(await signer(), seal)
    return await this.#send(text, segmentBytes(text, new Uint8Array()))
  }

  async #forward(segment: Spooled): Promise<string | null> {
    const { spool } = this.#options
    const bytes = await spool.read(segment)
    if (bytes === null) return null
    const problem = await this.#send(bytes.toString('latin1', 0, bytes.indexOf('\n')), bytes)
    if (problem !== null) await spool.forwarded(segment.seal.to)
    return problem
  }

  /** Throws unless the collector accepted it. Returns null, or why its receipt is not valid. */
  async #send(seal: string, bytes: Buffer): Promise<string | null> {
    const { config, dialer, contact } = this.#options
    const { headers, trust } = await peerFiles(config, 'offline.forward')
    const answer = await dialer.fetchBytes(this.#url, 'sink', {
      method: 'POST',
      headers: { 'content-type': 'application/vnd.plat.segment', ...headers },
      body: bytes,
      maxBytes: MAX_RESPONSE_BYTES,
      timeoutMs: config.timeoutSeconds * 1000,
      jurisdiction: jurisdictionOf({ upstream: config.url, jurisdiction: config.jurisdiction }, null) ?? '',
      ...trust,
    })
    const members = readJsonObject(answer.bytes) ?? {}
    if (answer.status !== 200) {
      const why = typeof members.message === 'string' ? members.message : 'no reason given'
      throw new Error(`the collector responded ${answer.status}: ${why}`)
    }
    return typeof members.receipt === 'string'
      ? await contact.accept(members.receipt, sealIdOf(seal))
      : 'it has no receipt'
  }
}
