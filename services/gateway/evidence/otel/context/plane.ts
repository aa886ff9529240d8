import type { Call, Identity, RequestContext, TraceContext } from '../../../call/index.ts'
import { type Plane, PlaneAround } from '../../../pipeline/plane.ts'
import { CallTrace } from './trace.ts'

/** Assigns traces to calls. */
export interface Tracing {
  begin(arrival: RequestContext): TraceContext
  monotonic(): number
}

/** A plane whose calls have traces, from authentication to the forwarded request. */
export class TracedPlane extends PlaneAround {
  readonly #tracing: Tracing

  constructor(plane: Plane, tracing: Tracing) {
    super(plane)
    this.#tracing = tracing
  }

  override read(arrival: RequestContext, identity: Identity): ReturnType<Plane['read']> {
    arrival.wire.trace = this.#tracing.begin(arrival)
    return super.read(arrival, identity)
  }

  override forward(call: Call<'identity' | 'target' | 'hold'>, head: 'unsent' | 'sent'): ReturnType<Plane['forward']> {
    const { trace, headers } = call.wire
    if (trace instanceof CallTrace) trace.forward(headers, this.#tracing.monotonic())
    return super.forward(call, head)
  }
}
