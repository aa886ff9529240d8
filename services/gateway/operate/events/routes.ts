import type { ServerResponse } from 'node:http'
import { type Clock, type PoolObserver, type SharedPool, watchedPool } from '@plat/core'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AdminError, type AdminRoutes, type BrowserSessions, type Caller, may } from '../../admin/index.ts'
import type { CallCount, EventFeed, EventReader, NumberedEvent } from './feed.ts'

/** Interval of comments that keep a connection open, in milliseconds. */
const HEARTBEAT_MS = 15_000
/** A reader with a token authenticates again after this long, in milliseconds. A reader with a session ends with it. */
const TOKEN_STREAM_MS = 15 * 60_000
/** Bytes that may wait for a slow reader; beyond them its stream ends, and it resumes. */
const BACKLOG_BYTES = 256 * 1024
/** Missed events of more characters would fill the backlog at each attempt: the reader starts over. */
const RESUME_CHARS = 64 * 1024
/** How long a reader waits before it resumes, in milliseconds. */
const RETRY_MS = 1_000

const EVENT_ID = /^([0-9a-f-]{36})-(\d{1,15})$/

export interface EventRoutesOptions {
  readonly feed: EventFeed
  /** Null: the console is off. */
  readonly sessions: Pick<BrowserSessions, 'onEnd'> | null
  readonly clock: Clock
  readonly observer?: PoolObserver | undefined
}

/** `GET /v1/events`: server-sent events (HTML, section 9.2), filtered by role and namespace of the reader. */
export function createEventRoutes({ feed, sessions, clock, observer }: EventRoutesOptions): AdminRoutes {
  const pool = watchedPool({ name: 'event_streams', observer })
  return {
    mount(context) {
      context.on('GET /v1/events', (request, reply, caller) => {
        if (request.method === 'HEAD') return reply.header('content-type', 'text/event-stream').send()
        if (pool.acquire(caller.by) !== null)
          throw new AdminError('rate_limited', 'too many event streams are open: close one')
        return stream(request, reply, { caller, pool, feed, sessions, clock })
      })
    },
  }
}

interface StreamParts extends Pick<EventRoutesOptions, 'feed' | 'sessions' | 'clock'> {
  readonly caller: Caller
  readonly pool: SharedPool
}

function stream(request: FastifyRequest, reply: FastifyReply, parts: StreamParts): FastifyReply {
  const { caller, pool, feed, sessions, clock } = parts
  reply.hijack()
  const { raw } = reply
  const reader = new EventStream(raw, caller, feed.instance)
  const undo = [() => pool.release(caller.by)]
  raw.once('close', () => {
    for (const step of undo.splice(0)) step()
  })
  raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-accel-buffering': 'no',
  })
  // Before the first event: a reader that follows later would miss what happens meanwhile.
  const missed = missedBy(request, feed)
  undo.push(feed.follow(reader))
  reader.open(missed, feed.seq)
  undo.push(clock.every(HEARTBEAT_MS, () => reader.heartbeat()))
  if (caller.session !== null && sessions !== null) undo.push(sessions.onEnd(caller.session, () => reader.end()))
  else undo.push(clock.after(TOKEN_STREAM_MS, () => reader.end()))
  return reply
}

/** Events since `Last-Event-ID`; null: some are no longer known; empty without the header. */
function missedBy({ headers }: FastifyRequest, feed: EventFeed): readonly NumberedEvent[] | null {
  const last = headers['last-event-id']
  if (last === undefined) return []
  const [, instance, seq] = EVENT_ID.exec(String(last)) ?? []
  return instance === undefined ? null : feed.after(instance, Number(seq))
}

/** One reader on its connection. */
export class EventStream implements EventReader {
  readonly #response: ServerResponse
  readonly #caller: Pick<Caller, 'sees' | 'principal'>
  readonly #instance: string

  constructor(response: ServerResponse, caller: Pick<Caller, 'sees' | 'principal'>, instance: string) {
    this.#response = response
    this.#caller = caller
    this.#instance = instance
  }

  /** `missed`: null if the reader must load everything again. */
  open(missed: readonly NumberedEvent[] | null, seq: number): void {
    this.#write(`retry: ${RETRY_MS}\n\n`)
    const text = missed === null ? null : this.#textOf(missed)
    if (text === null) this.#write(`id: ${this.#instance}-${seq}\nevent: reset\ndata: {}\n\n`)
    // So that a reader that sees no event can resume as well.
    else this.#write(text === '' ? `id: ${this.#instance}-${seq}\nevent: open\ndata: {}\n\n` : text)
  }

  event(event: NumberedEvent): void {
    const text = this.#frameOf(event)
    if (text !== '') this.#write(text)
  }

  /** Null: too long to be sent at once. */
  #textOf(events: readonly NumberedEvent[]): string | null {
    let text = ''
    for (const event of events) {
      text += this.#frameOf(event)
      if (text.length > RESUME_CHARS) return null
    }
    return text
  }

  /** Empty for an event that the caller does not see. */
  #frameOf({ seq, type, at, namespace, data, audit }: NumberedEvent): string {
    if (!this.#caller.sees(namespace)) return ''
    const isAuditor = audit !== undefined && may(this.#caller.principal, 'auditor', namespace)
    const body = JSON.stringify({ at, ...data, ...(isAuditor && audit) })
    return `id: ${this.#instance}-${seq}\nevent: ${type}\ndata: ${body}\n\n`
  }

  counts(counts: ReadonlyMap<string, Readonly<CallCount>>): void {
    const sum = { calls: 0, denied: 0, suppressed: 0 }
    for (const [namespace, count] of counts) {
      if (!this.#caller.sees(namespace)) continue
      sum.calls += count.calls
      sum.denied += count.denied
      sum.suppressed += count.suppressed
    }
    if (sum.calls > 0 || sum.suppressed > 0) this.#write(`event: calls.counted\ndata: ${JSON.stringify(sum)}\n\n`)
  }

  heartbeat(): void {
    this.#write(': \n\n')
  }

  end(): void {
    this.#response.end()
  }

  #write(text: string): void {
    if (this.#response.writableEnded || this.#response.destroyed) return
    if (this.#response.writableLength > BACKLOG_BYTES) this.#response.destroy()
    else this.#response.write(text)
  }
}
