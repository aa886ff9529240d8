import { after, jitter } from '../app/clock.ts'

/** One event of the gateway. */
export interface StreamEvent {
  /** `<topic>.<what>`, such as `approval.created`. */
  readonly name: string
  readonly id: string
}

/** `live`: events arrive; `polling`: this gateway has no events; `offline`: it does not respond, retried. */
export type StreamState = 'connecting' | 'live' | 'polling' | 'offline'

export interface StreamOptions {
  readonly url: string
  readonly event: (event: StreamEvent) => void
  readonly state: (state: StreamState) => void
}

/** First and longest pause between attempts. */
const BACKOFF_MS = 500
const MAX_BACKOFF_MS = 30_000
/** A stream without a byte for this long is dead: the gateway sends a heartbeat more often. */
const SILENCE_MS = 60_000
/** Longest line that is read; a longer one ends the stream. */
const MAX_LINE = 1 << 20

/** The gateway's events, until it is closed: with resume by `Last-Event-ID`, and exponential backoff with jitter. */
export class EventStream {
  readonly #options: StreamOptions
  readonly #end = new AbortController()
  #lastId = ''
  #failures = 0
  /** Ends the current attempt, or the pause before the next one. */
  #interrupt = () => {}

  constructor(options: StreamOptions) {
    this.#options = options
    void this.#run()
  }

  close(): void {
    this.#end.abort()
  }

  /** Called when the device has lost its network, or has it again: a broken connection is not noticed otherwise before its silence. */
  networkChanged(isOnline: boolean): void {
    if (isOnline) this.#failures = 0
    this.#interrupt()
  }

  async #run(): Promise<void> {
    while (!this.#end.signal.aborted) {
      const ended = await this.#connect()
      if (this.#end.signal.aborted) return
      if (ended === 'none') return this.#options.state('polling')
      this.#options.state(ended === 'refused' ? 'polling' : 'offline')
      await this.#pause()
    }
  }

  #pause(): Promise<void> {
    const ms = Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** this.#failures) * (0.5 + jitter() / 2)
    this.#failures = Math.min(this.#failures + 1, 10)
    return new Promise((resolve) => {
      const cancel = after(ms, resolve)
      this.#interrupt = () => {
        cancel()
        resolve()
      }
      this.#end.signal.addEventListener('abort', () => {
        cancel()
        resolve()
      })
    })
  }

  /** Reads one stream to its end. Returns `none` if the gateway has no such route, `refused` if it has no room for another stream now. */
  async #connect(): Promise<'ended' | 'none' | 'refused'> {
    const headers: Record<string, string> = { accept: 'text/event-stream' }
    if (this.#lastId !== '') headers['last-event-id'] = this.#lastId
    const stop = new AbortController()
    const silence = new Watch(SILENCE_MS, () => stop.abort())
    this.#interrupt = () => stop.abort()
    try {
      const signal = AbortSignal.any([this.#end.signal, stop.signal])
      const response = await fetch(this.#options.url, {
        headers,
        credentials: 'same-origin',
        cache: 'no-store',
        signal,
      })
      if (response.status === 404 || response.status === 403) return 'none'
      if (!response.ok || response.body === null)
        return response.status === 429 || response.status === 503 ? 'refused' : 'ended'
      this.#options.state('live')
      const parser = new EventParser((event) => this.#deliver(event))
      for await (const bytes of chunksOf(response.body)) {
        silence.again()
        parser.push(bytes)
      }
    } catch {
      // A broken connection ends like a closed one.
    } finally {
      silence.cancel()
      stop.abort()
    }
    return 'ended'
  }

  #deliver(event: StreamEvent): void {
    this.#failures = 0
    if (event.id !== '') this.#lastId = event.id
    this.#options.event(event)
  }
}

/** Calls back when it was not renewed for a time. */
class Watch {
  readonly #ms: number
  readonly #call: () => void
  #cancel: () => void

  constructor(ms: number, call: () => void) {
    this.#ms = ms
    this.#call = call
    this.#cancel = after(ms, call)
  }

  again(): void {
    this.#cancel()
    this.#cancel = after(this.#ms, this.#call)
  }

  cancel(): void {
    this.#cancel()
  }
}

async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    yield value
  }
}

/** Server-sent events as the HTML standard defines them, without their data: pages read what changed from the API. */
export class EventParser {
  readonly #event: (event: StreamEvent) => void
  readonly #decoder = new TextDecoder()
  #rest = ''
  #name = ''
  #id = ''
  #hasData = false

  constructor(event: (event: StreamEvent) => void) {
    this.#event = event
  }

  /** @throws RangeError for a line that is too long */
  push(bytes: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r(?!$)/)
    this.#rest = lines.pop() ?? ''
    if (this.#rest.length > MAX_LINE) throw new RangeError('a line of the event stream is too long')
    for (const line of lines) this.#line(line)
  }

  #line(line: string): void {
    if (line === '') {
      if (this.#hasData || this.#name !== '') this.#event({ name: this.#name || 'message', id: this.#id })
      this.#name = ''
      this.#hasData = false
      return
    }
    const [field = '', value = ''] = line.split(/:(.*)/s)
    const text = value.startsWith(' ') ? value.slice(1) : value
    if (field === 'event') this.#name = text
    else if (field === 'id' && !text.includes('\0')) this.#id = text
    else if (field === 'data') this.#hasData = true
  }
}
