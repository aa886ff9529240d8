import type { Duplex } from 'node:stream'
import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import { createWebSocketStream, type WebSocket } from 'ws'
import { type Ending, endings, type ViewMode } from './endings.ts'
import { withPongs } from './pongs.ts'
import { RfbError } from './rfb/error.ts'
import { greetSandbox, greetViewer } from './rfb/handshake.ts'
import { ViewerMessages } from './rfb/viewer-messages.ts'
import { openSandbox } from './sandbox.ts'

/** Time limit until pixels can flow, in milliseconds. */
const OPEN_MS = 15_000
/** Bytes that are read ahead of a slow sandbox. */
const BUFFER_BYTES = 16 * 1024

export interface ViewOptions {
  readonly viewer: WebSocket
  readonly mode: ViewMode
  /** Name of the screen for the viewer. */
  readonly name: string
  /** Of the sandbox. */
  readonly url: URL
  readonly caller: string
  readonly dialer: Pick<Dialer, 'connect'>
  readonly clock: Clock
  /** Called once. */
  readonly onEnd: (ending: Ending) => void
}

/** One view: relays the screen of a sandbox to a viewer, and what the viewer may send to the sandbox, each as fast as the other side reads. */
export class View {
  readonly #options: ViewOptions
  readonly #viewer: Duplex
  #sandbox: Duplex | null = null
  readonly #messages: ViewerMessages
  #isOver = false
  #isOpen = false
  /** Bytes of the sandbox, and those that were forwarded to it. */
  bytesOut = 0
  bytesIn = 0
  /** When something was relayed last, of the monotonic clock. */
  movedAt: number

  constructor(options: ViewOptions) {
    const { viewer, mode, clock } = options
    this.#options = options
    this.#messages = new ViewerMessages({ mayAct: mode === 'control' })
    this.movedAt = clock.monotonic()
    withPongs(viewer)
    this.#viewer = createWebSocketStream(viewer, { highWaterMark: BUFFER_BYTES })
    this.#viewer.on('error', (error) => this.end(isProtocolError(error) ? 'invalid' : 'closed'))
    viewer.once('close', () => this.end('closed'))
    viewer.on('message', (_data, isBinary) => {
      if (!isBinary) this.end('invalid')
    })
  }

  /** Messages with which the viewer acted. */
  get inputs(): number {
    return this.#messages.inputs
  }

  /** Messages with which the viewer would have acted. */
  get dropped(): number {
    return this.#messages.dropped
  }

  /** Connects both sides. Never rejects: whatever fails ends the view. */
  async open(): Promise<void> {
    const { clock } = this.#options
    const cancel = clock.after(OPEN_MS, () => {
      if (!this.#isOpen) this.end(this.#sandbox === null ? 'unreachable' : 'not_a_view')
    })
    try {
      await this.#open()
    } catch (error) {
      if (error instanceof RfbError) this.end(error.side === 'viewer' ? 'invalid' : 'not_a_view')
      else this.end(this.#sandbox === null ? 'unreachable' : 'sandbox_closed')
    } finally {
      cancel()
    }
  }

  /** Ends the view at once: nothing is relayed any more. Only the first ending counts. */
  end(ending: Ending): void {
    if (this.#isOver) return
    this.#isOver = true
    const { viewer, onEnd } = this.#options
    const { code, reason } = endings[ending]
    this.#sandbox?.destroy()
    // The close of the viewer is read, however much it sent before.
    this.#viewer.resume()
    viewer.close(code, reason)
    onEnd(ending)
  }

  /** Keeps the connection of a viewer open in proxies. */
  ping(): void {
    const { viewer } = this.#options
    if (viewer.readyState === viewer.OPEN && viewer.bufferedAmount === 0) viewer.ping(undefined, undefined, () => {})
  }

  async #open(): Promise<void> {
    const { name } = this.#options
    const sandbox = await openSandbox(this.#options)
    this.#sandbox = sandbox
    if (this.#isOver) {
      sandbox.destroy()
      return
    }
    sandbox.on('error', () => this.end('sandbox_closed'))
    const screen = await greetSandbox(sandbox)
    await greetViewer(this.#viewer, screen, name)
    if (this.#isOver) return
    this.#isOpen = true
    sandbox.once('end', () => this.end('sandbox_closed'))
    this.#relay(sandbox, this.#viewer, (chunk) => {
      this.bytesOut += chunk.length
      return chunk
    })
    this.#relay(this.#viewer, sandbox, (chunk) => {
      const forwarded = this.#messages.push(chunk)
      this.bytesIn += forwarded.length
      return forwarded
    })
  }

  #relay(from: Duplex, to: Duplex, step: (chunk: Buffer) => Buffer): void {
    from.on('data', (chunk: Buffer) => {
      if (this.#isOver) return
      this.movedAt = this.#options.clock.monotonic()
      const bytes = this.#stepped(step, chunk)
      if (bytes === null || bytes.length === 0 || to.write(bytes)) return
      from.pause()
      to.once('drain', () => from.resume())
    })
  }

  /** Null: the view has ended. */
  #stepped(step: (chunk: Buffer) => Buffer, chunk: Buffer): Buffer | null {
    try {
      return step(chunk)
    } catch (error) {
      if (!(error instanceof RfbError)) throw error
      this.end('invalid')
      return null
    }
  }
}

/** An error of the frames of the WebSocket itself, such as one that is too long. */
function isProtocolError(error: Error): boolean {
  return 'code' in error && String(error.code).startsWith('WS_ERR_')
}
