import { peerFiles } from '@plat/config'
import { Backoff, type Clock, type Ids, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import type { Bundles } from './bundles.ts'

/** Deadline of one request, from connect to the end of the body, in milliseconds. */
const REQUEST_TIMEOUT_MS = 60_000
/** Maximum length of an entity tag that is sent back, in characters. */
const MAX_ETAG_CHARS = 256

export interface PullOptions {
  readonly config: {
    readonly url: string
    readonly tokenFile: string
    readonly caFile: string
    readonly maxBackoffSeconds: number
  }
  readonly pollSeconds: number
  readonly maxBytes: number
  readonly bundles: Pick<Bundles, 'take'>
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** Polls a server for bundles, with exponential backoff and jitter after failures. */
export class Puller {
  readonly #options: PullOptions
  readonly #backoff: Backoff
  readonly #stop = new AbortController()
  /** Tag of the bundle processed last, whatever the result: it is not fetched again. */
  #etag: string | null = null
  #failures = 0
  #reported = ''
  #cancel: () => void = () => {}
  #look: Promise<void> | null = null

  constructor(options: PullOptions) {
    this.#options = options
    const { config, pollSeconds, ids } = options
    const firstMs = pollSeconds * 1000
    this.#backoff = new Backoff({ firstMs, maxMs: Math.max(firstMs, config.maxBackoffSeconds * 1000), ids })
  }

  /** Starts polling, with the first request at once. */
  start(): void {
    this.#look = this.#run().finally(() => {
      this.#look = null
      if (!this.#stop.signal.aborted) this.#cancel = this.#options.clock.after(this.#pauseMs(), () => this.start())
    })
  }

  async close(): Promise<void> {
    this.#stop.abort()
    this.#cancel()
    await this.#look
  }

  #pauseMs(): number {
    return this.#failures === 0 ? this.#options.pollSeconds * 1000 : this.#backoff.pauseMs(this.#failures)
  }

  async #run(): Promise<void> {
    const { config, log } = this.#options
    try {
      await this.#fetch()
      if (this.#failures > 0) log.info({ url: config.url }, 'configuration bundles are fetched again')
      this.#failures = 0
      this.#reported = ''
    } catch (error) {
      if (this.#stop.signal.aborted) return
      this.#failures++
      const problem = reasonOf(error)
      if (problem !== this.#reported) log.error({ url: config.url, problem }, 'configuration bundles cannot be fetched')
      this.#reported = problem
    }
  }

  async #fetch(): Promise<void> {
    const { config, maxBytes, bundles, dialer, log } = this.#options
    const { headers: authorization, trust } = await peerFiles(config, 'configBundle.pull')
    const { status, headers, bytes } = await dialer.fetchBytes(config.url, 'sink', {
      headers: {
        accept: 'application/gzip',
        'user-agent': 'plat-gateway',
        ...(this.#etag !== null && { 'if-none-match': this.#etag }),
        ...authorization,
      },
      maxBytes,
      timeoutMs: REQUEST_TIMEOUT_MS,
      wants: (head) => head.status === 200,
      signal: this.#stop.signal,
      ...trust,
    })
    if (status === 304 && this.#etag !== null) return
    if (status !== 200) throw new Error(`the server responded ${status}`)
    const result = await bundles.take({ bytes, source: 'pull', isWhole: true })
    if (result.kind === 'waits') {
      if (result.message !== this.#reported)
        log.warn({ url: config.url, why: result.message }, 'a configuration bundle is not applied yet')
      this.#etag = null
      return
    }
    const { etag = '' } = headers
    this.#etag = etag === '' || etag.length > MAX_ETAG_CHARS ? null : etag
  }
}
