import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { BatchRequests } from './batch.ts'
import type { Fact, Facts } from './facts.ts'
import type { Operation } from './operation.ts'
import type { CountHit } from './redactor.ts'
import type { Snapshot } from './snapshot.ts'

/** Position of a call in its trace (W3C Trace Context). Ids are lower-case hex. */
export interface TraceContext {
  /** Undefined when the caller sent no trace and the gateway starts none. */
  readonly traceId: string | undefined
  /** The span in the records of the call. */
  readonly spanId: string | undefined
  /** The `traceparent` sent upstream; null: the caller's is forwarded unchanged. */
  readonly traceparent: string | null
  /** Sets the parent from the trace context inside the message, which has precedence over the headers. */
  adopt(traceparent: string, tracestate: string): void
}

/** The request as received. Its credentials are removed once `authenticate` has read them. */
export interface WireRequest {
  readonly method: string
  /** Path without query, percent-encoding untouched. */
  readonly path: string
  /** Query without `?`; empty when there is none. */
  readonly query: string
  /** Lower-case names. Authentication sets `authorization`, `dpop`, `cookie` and `proxy-authorization` to undefined. */
  headers: IncomingHttpHeaders
  /** The unread body; the plane reads it within its limits. */
  readonly body: Readable
  /** `host:port` of the peer. */
  readonly remote: string
  /** State of the plane for this request. Only the plane uses it. */
  note?: object | undefined
  /** Undefined when tracing is off, and before the call has a trace. */
  trace?: TraceContext | undefined
}

/** Why a call was aborted: the `reason` of its signal. */
export type AbortReason = 'client' | 'revoked' | 'deadline' | 'drain' | 'denied'

export type AbortListener = (() => void) | { handleEvent(): void }

/** The subset of `AbortSignal` that a call implements, because an `AbortSignal` costs more per call than the policy evaluation. */
export interface CallSignal {
  readonly aborted: boolean
  /** An `AbortReason` once `aborted` is true. */
  readonly reason: unknown
  addEventListener(type: 'abort', listener: AbortListener, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: AbortListener): void
}

/** A request before its body was read, which is the input of `authenticate`. */
export interface RequestContext {
  /** UUIDv7: `x-plat-decision-id` on the wire, `call` in the ledger. */
  readonly id: string
  readonly wire: WireRequest
  /** Aborts with an `AbortReason`. */
  readonly signal: CallSignal
  /** Milliseconds since the epoch. */
  readonly receivedAt: number
  /** Configuration, policy and registry: an immutable view, the same for a whole pass. */
  readonly snapshot: Snapshot
  /** Counts bytes that stay in memory until the call has ended and its response was sent. Returns false when the limit is reached. */
  retain(bytes: number): boolean
  /** Calls `close` once the call has ended and its response was sent. Absent in tests of parts that need no end. */
  whenOver?(close: () => void): void
}

/** A request body that passed the strict JSON scanner. Unchanged bytes are forwarded as received. */
export interface Body {
  readonly bytes: Uint8Array
  /** Bytes of the request with files that are not in memory; absent: those of `bytes`. */
  readonly size?: number
  /** Parsed on first use, with the semantics of `JSON.parse`. For reading only: serializing it would lose the precision of numbers. */
  readonly value: unknown
  /** `value` with JSON in fields of a form parsed, as providers may read it; absent: `value`. */
  readonly nested?: unknown
  /** The bytes of the arguments as received (`params.arguments`; in other protocols the whole body); null when there are none. */
  readonly args: Uint8Array | null
  /** The parsed `args`, part of `value`; absent or undefined: they must be parsed. */
  readonly argsValue?: unknown
  /** Other free-form content that is forwarded, with the source text of numbers; absent or undefined: none. */
  readonly beside?: unknown
  /** The bytes of responses to requests of the server, an object by request; absent or null: none. */
  readonly inputs?: Uint8Array | null
  /** The bytes of the message's metadata (`_meta`); absent or null: none. */
  readonly meta?: Uint8Array | null
  /** The requests of a batch, each of which was judged; absent: it is none. */
  readonly batch?: BatchRequests
  /** The limit of output tokens that the gateway set in the request; absent or null: it set none. */
  readonly maxTokens?: number | null
}

/** A request as classified by its plane. */
export interface Parsed {
  readonly operation: Operation
  /** The method of the protocol, such as `tools/call`. */
  readonly method: string
  /** Name of the server, route or agent as sent by the caller, before it is resolved: `notes`. */
  readonly server: string
  /** Tool, model, skill, resource or prompt. */
  readonly name: string | null
  /** Immutable: a changed body replaces it. */
  readonly body: Body | null
  /** Id of the call to which this one belongs: of responses to server requests, re-subscriptions, multi-round requests and tasks. */
  readonly parent: string | null
  /** Operation of the parent call, for a response to a server request: it is judged like that call. */
  readonly parentOperation?: Operation | null
}

/** A call. Only the runner may change it; stages, reviews and planes see it readonly, with the facts that they declared. */
export interface Call<F extends Fact = never> extends RequestContext, Parsed {
  /** 2 after an approval was granted. */
  readonly pass: 1 | 2
  readonly facts: Readonly<Pick<Facts, F>>
  /** Counts hits of data-loss prevention for the records of the call. Absent in tests of parts that record none. */
  readonly countHit?: CountHit
}
