import type { Denial } from '../../call/index.ts'

export type WaitResult = 'granted' | Denial

export interface Waiter {
  readonly callId: string
  readonly until: Promise<WaitResult>
  readonly answer: (answer: WaitResult) => void
}

/** Calls that wait on this replica, by approval. A call is removed when it is settled or its caller leaves. */
export class Waiters {
  readonly #byApproval = new Map<string, Waiter[]>()

  add(id: string, callId: string): Waiter {
    const { promise, resolve } = Promise.withResolvers<WaitResult>()
    const waiter = { callId, until: promise, answer: resolve }
    const others = this.#byApproval.get(id)
    if (others === undefined) this.#byApproval.set(id, [waiter])
    else others.push(waiter)
    return waiter
  }

  /** Returns false if the waiter was settled before. */
  remove(id: string, waiter: Waiter): boolean {
    const waiting = this.#byApproval.get(id) ?? []
    const rest = waiting.filter((other) => other !== waiter)
    if (rest.length === 0) this.#byApproval.delete(id)
    else this.#byApproval.set(id, rest)
    return rest.length < waiting.length
  }

  has(id: string): boolean {
    return this.#byApproval.has(id)
  }

  /** Ids of the approvals that calls wait for. */
  ids(): string[] {
    return [...this.#byApproval.keys()]
  }

  /** Releases the newest call, because callers of older ones may have given up silently. The others get `lost`. */
  grant(id: string, lost: Denial): void {
    const waiting = this.#take(id)
    for (const [index, waiter] of waiting.entries()) waiter.answer(index === waiting.length - 1 ? 'granted' : lost)
  }

  /** Refuses the waiting calls, and returns their ids. */
  refuse(id: string, denial: Denial): readonly string[] {
    const waiting = this.#take(id)
    for (const waiter of waiting) waiter.answer(denial)
    return waiting.map(({ callId }) => callId)
  }

  #take(id: string): Waiter[] {
    const waiting = this.#byApproval.get(id) ?? []
    this.#byApproval.delete(id)
    return waiting
  }
}
