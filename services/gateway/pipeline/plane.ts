import type { Call, Denial, Frame, Head, Identity, Parsed, Reply, RequestContext } from '../call/index.ts'

/** A protocol: reads a request, forwards it, and renders whatever the runner decides in its own dialect. */
export interface Plane {
  /** The body under its limits, classified. What it refuses is the call's one record. */
  read(arrival: RequestContext, identity: Identity): Parsed | Denial | Promise<Parsed | Denial>
  /** `sent`: a wait has opened the stream already. */
  forward(call: Call<'identity' | 'target' | 'hold'>, head: 'unsent' | 'sent'): Denial | Promise<Reply | Denial>
  /**
   * Whether the request ends work that is under way, such as a cancellation: it frees resources, so that an overloaded gateway accepts it.
   * Before the body was read `parsed` is null, and the result is whether the head permits it. Absent: no request of this protocol does.
   */
  endsWork?(arrival: RequestContext, parsed: Parsed | null): boolean
  /**
   * Head and beats while a person decides; null: the client takes no stream, its head waits. `leave` ends the wait as if
   * the client had left, for a protocol in which it can say so without closing the connection.
   */
  keepAlive(
    call: Call<'identity'>,
    approvalId: string,
    leave: () => void,
  ): { readonly head: Head; heartbeat(): Frame } | null
  /** The answer to a refusal while no head has been sent. `identity` refusals come here too, with `parsed` null. */
  refuse(arrival: RequestContext, parsed: Parsed | null, denial: Denial): { readonly head: Head; readonly frame: Frame }
  /** The dialect's terminal error once the head has been sent. */
  abort(call: Call, denial: Denial): readonly Frame[]
  /** Bytes of a frame whose `raw` is null. */
  encode(frame: Frame): Uint8Array
}
