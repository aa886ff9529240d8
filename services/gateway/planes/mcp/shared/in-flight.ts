import { member } from '@plat/core'
import { callerOf, type Frame, type Identity, type Reply } from '../../../call/index.ts'
import { parsedOrUndefined } from '../../wire/message.ts'
import { idOf, type McpRequest } from '../message.ts'

type Frames = Extract<Reply, { kind: 'frames' }>['frames']

/**
 * The requests that servers are working on, by client and JSON-RPC id: a `notifications/cancelled` does not name the server. Bounded by the
 * number of live calls. Another gateway does not know them; there a cancellation has no effect at the server.
 */
export class InFlightRequests {
  readonly #clients = new Map<string, Map<string, string>>()

  /** Stores a request. Returns a function that removes it. */
  add(identity: Identity, request: McpRequest, server: string): () => void {
    const literal = idOf(request)
    if (request.kind !== 'request' || literal === null) return () => {}
    const client = clientOf(identity, request)
    const id = JSON.stringify(parsedOrUndefined(literal))
    const requests = this.#clients.getOrInsertComputed(client, () => new Map())
    requests.set(id, server)
    return () => {
      requests.delete(id)
      if (requests.size === 0 && this.#clients.get(client) === requests) this.#clients.delete(client)
    }
  }

  /** Returns the server that works on the request which a notification cancels; null: none does. */
  serverOf(identity: Identity, notification: McpRequest, message: unknown): string | null {
    const id = JSON.stringify(member(member(message, 'params'), 'requestId'))
    return this.#clients.get(clientOf(identity, notification))?.get(id) ?? null
  }
}

function clientOf(identity: Identity, { shared }: McpRequest): string {
  return JSON.stringify([callerOf(identity), shared?.session?.id ?? null])
}

/** Returns the frames of a reply; calls `done` when they have ended or are no longer read. */
export function untilEnd(frames: Frames, done: () => void): Frames {
  if (!(Symbol.asyncIterator in frames)) {
    done()
    return frames
  }
  return followed(frames, done)
}

async function* followed(
  frames: AsyncIterable<readonly Frame[], unknown>,
  done: () => void,
): AsyncGenerator<readonly Frame[], unknown> {
  try {
    return yield* frames
  } finally {
    done()
  }
}
