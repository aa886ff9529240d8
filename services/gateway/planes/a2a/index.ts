import { type Clock, whenReady } from '@plat/core'
import {
  type Call,
  type Denial,
  deny,
  type Frame,
  type Identity,
  isDenial,
  type Parsed,
  type Reply,
  type RequestContext,
  type Snapshot,
} from '../../call/index.ts'
import type { Plane } from '../../pipeline/plane.ts'
import { type BodyLimits, hasLengthUpTo, STREAM_HEADERS } from '../wire/message.ts'
import { commentEvent } from '../wire/sse.ts'
import { refusal, terminalError } from './answer.ts'
import { type A2aForward, type AgentPlace, type Forwarder, Forwarding } from './forward.ts'
import { A2aFrame } from './frame.ts'
import type { ListView } from './list.ts'
import { CANCEL_TASK } from './methods.ts'
import { namedVersion, type Reader, read } from './read.ts'
import { type NamedInRequest, NOTHING_NAMED, noted } from './request.ts'

export { createBindReview } from './bind.ts'
export { createAgentRedactReview } from './redact/review.ts'
export { a2aTexts } from './redact/texts.ts'

/** Largest body of a request that ends work, in bytes. */
const ENDING_MAX_BYTES = 2048

export interface ServedCard {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | null
}

/** Looks up agents, and the owners of their tasks and contexts. */
export interface ExposedAgents<A extends AgentPlace> {
  /** Returns the agent `a2a/<ns>/<agent>`; null when it is not in the snapshot. */
  agent(snapshot: Snapshot, server: string): A | null
  card(
    agent: A,
    request: {
      readonly host: string | undefined
      readonly ifNoneMatch: string | undefined
      /** Version that the client named; empty for none. */
      readonly version: string
    },
  ): Promise<ServedCard | Denial>
  readonly owners: {
    owns(identity: Identity, server: string, kind: 'task' | 'context', id: string): boolean
    callOf(server: string, kind: 'task', id: string): string | null
    /** Records the sender of a message to a task before the request is forwarded. Resolves to null when that is durable. */
    note(call: Call<'identity' | 'target'>): null | Denial | Promise<null | Denial>
  }
}

/** Seals page tokens of agents for one session at one agent. */
export interface Pages {
  seal(identity: Identity, server: string, token: string): string
  /** Returns null if the text was not sealed for this caller. */
  open(identity: Identity, server: string, text: string): string | null
}

export interface A2aPlaneOptions<A extends AgentPlace> extends BodyLimits, Omit<Forwarder, 'viewOf'> {
  readonly clock: Clock
  readonly agents: ExposedAgents<A>
  readonly pages: Pages
}

/** The plane of `/a2a/<ns>/<agent>`: A2A over JSON-RPC. Messages of 0.3 are translated to 1.0 when they are read, and back when they are sent. */
export function createA2aPlane<A extends AgentPlace>(options: A2aPlaneOptions<A>): Plane {
  return new A2aPlane(options)
}

/** Returns the tasks, contexts and webhooks that a call of this plane names. */
export function namedInCall({ wire }: Pick<Call, 'wire'>): NamedInRequest {
  return noted(wire)?.named ?? NOTHING_NAMED
}

class A2aPlane<A extends AgentPlace> implements Plane, Reader, Forwarder {
  readonly clock: Clock
  readonly dialer: Forwarder['dialer']
  readonly extraCA: string | null
  readonly upstreamTimeoutMs: number
  readonly transactions: Forwarder['transactions']
  readonly maxBodyBytes: number
  readonly bodyReadTimeoutMs: number
  readonly #agents: ExposedAgents<A>
  readonly #pages: Pages

  constructor(options: A2aPlaneOptions<A>) {
    this.clock = options.clock
    this.dialer = options.dialer
    this.extraCA = options.extraCA
    this.upstreamTimeoutMs = options.upstreamTimeoutMs
    this.transactions = options.transactions
    this.maxBodyBytes = options.maxBodyBytes
    this.bodyReadTimeoutMs = options.bodyReadTimeoutMs
    this.#agents = options.agents
    this.#pages = options.pages
  }

  read(arrival: RequestContext, identity: Identity): Parsed | Denial | Promise<Parsed | Denial> {
    return read(this, arrival, identity)
  }

  forward(call: Call<'identity' | 'target' | 'hold'>, head: 'unsent' | 'sent'): Denial | Promise<Reply | Denial> {
    const request = noted(call.wire)
    const agent = this.#agents.agent(call.snapshot, call.facts.target.server)
    if (request === null) return deny('internal', 'the request was not read')
    if (agent === null) return deny('unknown_agent', `${call.server} is not exposed`)
    if (call.operation === 'a2a.card') return this.#card(call, agent)
    const forwarded = (denial: Denial | null) =>
      denial ?? this.#forwarded({ call, request, agent, sent: head === 'sent' })
    return whenReady(this.#agents.owners.note(call), forwarded)
  }

  #forwarded(context: Omit<A2aForward, 'transaction'>): Denial | Promise<Reply | Denial> {
    const run = (transaction: string | Denial | null) =>
      isDenial(transaction) ? transaction : new Forwarding(this, { ...context, transaction }).run()
    return whenReady(this.transactions?.token(context.call) ?? null, run)
  }

  async #card({ wire }: Pick<Call, 'wire'>, agent: A): Promise<Reply | Denial> {
    const { host, 'if-none-match': ifNoneMatch } = wire.headers
    const card = await this.#agents.card(agent, { host, ifNoneMatch, version: namedVersion(wire) })
    if (isDenial(card)) return card
    const frames = card.body === null ? [] : [A2aFrame.body('final', card.body)]
    return { kind: 'frames', head: { status: card.status, headers: card.headers }, attempts: [], frames }
  }

  endsWork({ wire: { headers } }: RequestContext, parsed: Parsed | null): boolean {
    return parsed === null ? hasLengthUpTo(headers, ENDING_MAX_BYTES) : parsed.method === CANCEL_TASK
  }

  keepAlive(call: Call<'identity'>): ReturnType<Plane['keepAlive']> {
    if (noted(call.wire)?.row?.streams !== true) return null
    const beat = () => A2aFrame.event(commentEvent('waiting for approval'))
    return { head: { status: 200, headers: STREAM_HEADERS }, heartbeat: beat }
  }

  refuse(arrival: RequestContext, _: Parsed | null, denial: Denial): ReturnType<Plane['refuse']> {
    return refusal(arrival, denial)
  }

  abort(call: Call, denial: Denial): readonly Frame[] {
    return [terminalError(call.id, noted(call.wire), denial)]
  }

  /** Frames of this plane have their bytes; a frame without bytes was created elsewhere and is a JSON body. */
  encode(frame: Frame): Uint8Array {
    return frame.raw ?? Buffer.from(JSON.stringify(frame.value))
  }

  openPage(identity: Identity, server: string, text: string): string | null {
    return this.#pages.open(identity, server, text)
  }

  callOf(server: string, task: string): string | null {
    return this.#agents.owners.callOf(server, 'task', task)
  }

  viewOf(identity: Identity, server: string, context: unknown): ListView {
    const { owners } = this.#agents
    const isHidden = typeof context === 'string' && context !== '' && !owners.owns(identity, server, 'context', context)
    return {
      owns: (task) => owners.owns(identity, server, 'task', task),
      // A next page would reveal that the context of another caller has tasks.
      sealPage: (token) => (isHidden ? '' : this.#pages.seal(identity, server, token)),
    }
  }
}
