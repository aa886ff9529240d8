import type { Call, Denial, Frame, Head, Identity, Parsed, Reply, RequestContext } from '../call/index.ts'

/** A protocol: reads a request, forwards it, and renders the runner's decisions in the format of the protocol. */
export interface Plane {
  /** Reads the body within its limits and classifies the request. A denial becomes the only record of the call. */
  read(arrival: RequestContext, identity: Identity): Parsed | Denial | Promise<Parsed | Denial>
  /** Forwards the call. `head` is `sent` if a wait for an approval has already opened the response stream. */
  forward(call: Call<'identity' | 'target' | 'hold'>, head: 'unsent' | 'sent'): Denial | Promise<Reply | Denial>
  /**
   * Returns true when the request ends other work, such as a cancellation: it frees resources, so an overloaded gateway accepts it.
   * `parsed` is null before the body was read; the result is then whether the head permits it. Absent: no request of this protocol ends work.
   */
  endsWork?(arrival: RequestContext, parsed: Parsed | null): boolean
  /**
   * Called when a call starts to wait for an approval. Returns the milliseconds after which its client gives up, so that the call is refused
   * with `approval_pending` before; null: it waits for the decision. Call `leave` when the client cancels the request without closing its
   * connection. Absent: clients of this protocol wait, and cancel only by closing their connection.
   */
  pause?(call: Call<'identity'>, leave: () => void): number | null
  /**
   * Returns the response head and heartbeats to send while an approval is pending, or null when the client accepts no stream, so that
   * nothing is sent before the decision.
   */
  keepAlive(call: Call<'identity'>, approvalId: string): { readonly head: Head; heartbeat(): Frame } | null
  /** Renders a refusal before the head was sent. `parsed` is null when the caller was not authenticated or the body not read. */
  refuse(arrival: RequestContext, parsed: Parsed | null, denial: Denial): { readonly head: Head; readonly frame: Frame }
  /** Renders a refusal after the head was sent: the protocol's terminal error; null: it has none, and the connection is closed. */
  abort(call: Call, denial: Denial): readonly Frame[] | null
  /** Encodes a frame whose `raw` is null. */
  encode(frame: Frame): Uint8Array
}

/** A plane that passes everything on to another one, for classes that change some of it. */
export class PlaneAround implements Plane {
  readonly #inner: Plane

  constructor(inner: Plane) {
    this.#inner = inner
  }

  read(arrival: RequestContext, identity: Identity): ReturnType<Plane['read']> {
    return this.#inner.read(arrival, identity)
  }

  forward(call: Call<'identity' | 'target' | 'hold'>, head: 'unsent' | 'sent'): Denial | Promise<Reply | Denial> {
    return this.#inner.forward(call, head)
  }

  endsWork(arrival: RequestContext, parsed: Parsed | null): boolean {
    return this.#inner.endsWork?.(arrival, parsed) === true
  }

  pause(call: Call<'identity'>, leave: () => void): number | null {
    return this.#inner.pause?.(call, leave) ?? null
  }

  keepAlive(call: Call<'identity'>, approvalId: string): ReturnType<Plane['keepAlive']> {
    return this.#inner.keepAlive(call, approvalId)
  }

  refuse(
    arrival: RequestContext,
    parsed: Parsed | null,
    denial: Denial,
  ): { readonly head: Head; readonly frame: Frame } {
    return this.#inner.refuse(arrival, parsed, denial)
  }

  abort(call: Call, denial: Denial): readonly Frame[] | null {
    return this.#inner.abort(call, denial)
  }

  encode(frame: Frame): Uint8Array {
    return this.#inner.encode(frame)
  }
}
