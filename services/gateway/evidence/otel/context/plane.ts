import type { Call, Denial, Frame, Identity, Parsed, Reply, RequestContext, TraceContext } from '../../../call/index.ts'
import type { Plane } from '../../../pipeline/plane.ts'
import { CallTrace } from './trace.ts'

/** Assigns traces to calls. */
export interface Tracing {
  begin(arrival: RequestContext): TraceContext
  monotonic(): number
}

/** A plane whose calls have traces, from authentication to the forwarded request. */
export class TracedPlane implements Plane {
  readonly #plane: Plane
  readonly #tracing: Tracing

  constructor(plane: Plane, tracing: Tracing) {
    this.#plane = plane
    this.#tracing = tracing
  }

  read(arrival: RequestContext, identity: Identity): Parsed | Denial | Promise<Parsed | Denial> {
    arrival.wire.trace = this.#tracing.begin(arrival)
    return this.#plane.read(arrival, identity)
  }

  forward(call: Call<'identity' | 'target' | 'hold'>, head: 'unsent' | 'sent'): Denial | Promise<Reply | Denial> {
    const { trace, headers } = call.wire
    if (trace instanceof CallTrace) trace.forward(headers, this.#tracing.monotonic())
    return this.#plane.forward(call, head)
  }

  endsWork(arrival: RequestContext, parsed: Parsed | null): boolean {
    return this.#plane.endsWork?.(arrival, parsed) === true
  }

  pause(call: Call<'identity'>, leave: () => void): number | null {
    return this.#plane.pause?.(call, leave) ?? null
  }

  keepAlive(call: Call<'identity'>, approvalId: string): ReturnType<Plane['keepAlive']> {
    return this.#plane.keepAlive(call, approvalId)
  }

  refuse(arrival: RequestContext, parsed: Parsed | null, denial: Denial): ReturnType<Plane['refuse']> {
    return this.#plane.refuse(arrival, parsed, denial)
  }

  abort(call: Call, denial: Denial): readonly Frame[] {
    return this.#plane.abort(call, denial)
  }

  encode(frame: Frame): Uint8Array {
    return this.#plane.encode(frame)
  }
}
