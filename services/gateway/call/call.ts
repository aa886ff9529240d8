import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Fact, Facts } from './facts.ts'
import type { Operation } from './operation.ts'
import type { Snapshot } from './snapshot.ts'

/** Where a call stands in its trace (W3C Trace Context). Ids are lower-case hex. */
export interface TraceContext {
  /** Undefined: nobody has named a trace, and none begins here. */
  readonly traceId: string | undefined
  /** The span that the records of the call name. */
  readonly spanId: string | undefined
  /** What whoever the call is forwarded to is told; null: what the caller said goes on as it is. */
  readonly traceparent: string | null
  /** The message itself names where it comes from, which counts more than what its headers say. */
  adopt(traceparent: string, tracestate: string): void
}

/** The request as it came in, with its credentials taken out once `authenticate` has read them. */
export interface WireRequest {
  readonly method: string
  /** Path without query, percent-encoding untouched. */
  readonly path: string
  /** Query without `?`; empty when there is none. */
  readonly query: string
  /** Lower-case names. Authentication puts others in their place, without `authorization`, `dpop`, `cookie` and `proxy-authorization`. */
  headers: IncomingHttpHeaders
  /** The body, unread; the plane reads it under its limits. */
  readonly body: Readable
  /** `host:port` of the peer. */
  readonly remote: string
  /** What the plane keeps of the request until its answer. Nobody else looks at it. */
  note?: object | undefined
  /** Undefined while nobody asks for traces, and before the call has one. */
  trace?: TraceContext | undefined
}

/** Why a call is being stopped from outside: the `reason` of its signal. */
export type AbortReason = 'client' | 'revoked' | 'deadline' | 'drain' | 'denied'

/** Hears of the stop of a call. */
export type AbortListener = (() => void) | { handleEvent(): void }

/** The part of an `AbortSignal` that a call has. An `AbortSignal` fits, but costs a governed call more than its policy does. */
export interface CallSignal {
  readonly aborted: boolean
  /** A `AbortReason` once it is aborted. */
  readonly reason: unknown
  addEventListener(type: 'abort', listener: AbortListener, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: AbortListener): void
}

/** The request head: all that `authenticate` sees. */
export interface RequestContext {
  /** UUIDv7: `x-plat-decision-id` on the wire, `call` in the ledger. */
  readonly id: string
  readonly wire: WireRequest
  /** Aborts with a `AbortReason`. */
  readonly signal: CallSignal
  /** Milliseconds since the epoch. */
  readonly receivedAt: number
  /** Configuration, policy and registry: one immutable view per pass. */
  readonly snapshot: Snapshot
  /** Counts bytes that are held in memory until the call is over and its response was sent. Returns false when there is no room. */
  retain(bytes: number): boolean
}

/** A request body whose bytes passed the strict scanner. Unchanged bytes are forwarded as they came. */
export interface Body {
  readonly bytes: Uint8Array
  /** Parsed on first use, `JSON.parse` semantics: for looking, not for writing back. */
  readonly value: unknown
  /** The bytes of the arguments (`params.arguments`; elsewhere the whole body) as received; null when there are none. */
  readonly args: Uint8Array | null
  /** `args` as they stand in `value`; absent or undefined: they must be parsed. */
  readonly argsValue?: unknown
  /** What else the sender wrote freely and the upstream gets, with the source text of numbers; absent or undefined: nothing. */
  readonly beside?: unknown
  /** The bytes of answers to what the server asked, a map by question; absent or null: there are none. */
  readonly inputs?: Uint8Array | null
  /** The bytes of what the message says of itself, all of it; absent or null: nothing. */
  readonly meta?: Uint8Array | null
  /** Output tokens that the gateway cut the request down to; absent or null: it did not. */
  readonly maxTokens?: number | null
}

/** What the plane reads from the body. */
export interface Parsed {
  readonly operation: Operation
  /** The protocol's own word, such as `tools/call`. */
  readonly method: string
  /** The server, route or agent as the caller named it, before it is resolved: `notes`. */
  readonly server: string
  /** Tool, model, skill, resource or prompt. */
  readonly name: string | null
  /** Replaced as a whole, never changed in place. */
  readonly body: Body | null
  /** The call that this one belongs to: answers, re-subscriptions, multi-round requests, tasks. */
  readonly parent: string | null
  /** Operation of that call, for an answer: it is judged as that call is. */
  readonly parentOperation?: Operation | null
}

/** One object per call, mutable for the runner alone. Everybody else sees it readonly, and only the facts that they declared. */
export interface Call<F extends Fact = never> extends RequestContext, Parsed {
  /** 2 after a wait was granted. */
  readonly pass: 1 | 2
  readonly facts: Readonly<Pick<Facts, F>>
}
