import { peerFiles } from '@plat/config'
import { type Clock, type Ids, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import type { Bundles } from './bundles.ts'

/** Deadline of one request: connection, head and body, in milliseconds. */
const REQUEST_TIMEOUT_MS = 60_000
/** Longest entity tag that is sent back, in characters. */
const MAX_ETAG_CHARS = 256

export interface PullOptions {
  readonly config: {
    readonly url: string
    readonly tokenFile: string
    readonly caFile: string
    readonly maxBackoffSeconds: number
  }
  /** `configBundle.pollSeconds` */
  readonly pollSeconds: number
  readonly maxBytes: number
  readonly bundles: Pick<Bundles, 'take'>
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** Fetches bundles from a server, one look after the other. A look that fails is followed by a longer pause. */
export class Puller {
  readonly #options: PullOptions
  readonly #stop = new AbortController()
  /** Tag of the bundle that was dealt with last, whatever became of it: it is not fetched again. */
  #etag: string | null = null
  #failures = 0
  #told = ''
  #cancel: () => void = () => {}
  #look: Promise<void> | null = null

  constructor(options: PullOptions) {
    this.#options = options
  }

  /** Looks now, and then again and again. */
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

  /** Doubles with each failure, a little apart for each gateway, so that a server that comes back is not met by all at once. */
  #pauseMs(): number {
    const { config, pollSeconds, ids } = this.#options
    if (this.#failures === 0) return pollSeconds * 1000
    const longest = Math.max(pollSeconds, config.maxBackoffSeconds) * 1000
    const [dice = 0] = ids.random(1)
    return Math.min(longest, pollSeconds * 1000 * 2 ** Math.min(this.#failures, 20)) * (1 - dice / 1024)
  }

  async #run(): Promise<void> {
    const { config, log } = this.#options
    try {
      await this.#fetch()
      if (this.#failures > 0) log.info({ url: config.url }, 'configuration bundles are fetched again')
      this.#failures = 0
      this.#told = ''
    } catch (error) {
      if (this.#stop.signal.aborted) return
      this.#failures++
      const problem = reasonOf(error)
      if (problem !== this.#told) log.error({ url: config.url, problem }, 'configuration bundles cannot be fetched')
      this.#told = problem
    }
  }

  async #fetch(): Promise<void> {
    const { config, maxBytes, bundles, dialer, log } = this.#options
    const { headers: shown, trust } = await peerFiles(config, 'configBundle.pull')
    const { status, headers, bytes } = await dialer.fetchBytes(config.url, 'sink', {
      headers: {
        accept: 'application/gzip',
        'user-agent': 'plat-gateway',
        ...(this.#etag !== null && { 'if-none-match': this.#etag }),
        ...shown,
      },
      maxBytes,
      timeoutMs: REQUEST_TIMEOUT_MS,
      wants: (head) => head.status === 200,
      signal: this.#stop.signal,
      ...trust,
    })
    if (status === 304 && this.#etag !== null) return
    if (status !== 200) throw new Error(`the server answered ${status}`)
    const taken = await bundles.take({ bytes, source: 'pull', isWhole: true })
    if (taken.kind === 'waits') {
      if (taken.message !== this.#told)
        log.warn({ url: config.url, why: taken.message }, 'a configuration bundle waits')
      this.#etag = null
      return
    }
    const { etag = '' } = headers
    this.#etag = etag === '' || etag.length > MAX_ETAG_CHARS ? null : etag
  }
}
