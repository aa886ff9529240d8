import type { Clock, Ids } from '@plat/core'
import type { Log } from '@plat/process'
import type { Leadership, Leases } from '@plat/state'
import type { Notice } from '../notice.ts'
import { type Claim, Deliverer, GIVE_UP_AFTER_MS, type Sent } from './courier.ts'
import type { Outbox } from './outbox.ts'

/** How long a replica may need to send one notice, in milliseconds: longer than the time limit of the request. */
const CLAIM_MS = 30_000
/** Interval of the leader's periodic work, in milliseconds. */
const LOOK_EVERY_MS = 15_000
/** How long a stop waits for the notices that are being sent, in milliseconds. */
const STOP_MS = 2_000

export interface DeliveriesOptions {
  /** The receivers, and how a notice is sent once to each. Sending never rejects. */
  readonly receivers: ReadonlyMap<string, (notice: Notice) => Promise<Sent>>
  readonly outbox: Outbox
  readonly leases: Leases
  readonly leadership: Leadership
  /** Resolves when every event of other replicas is known here; null: there are no others. */
  readonly catchUp: (() => Promise<void>) | null
  /** Queues notices of which no replica has queued one: the replica that should have is gone. */
  readonly addMissing: () => void
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly log: Log
}

/**
 * Delivers the notices of all replicas, by the replica that leads. A claim on each notice keeps a leader that does not know yet that it is not one
 * any more from sending it as well.
 */
export class Deliveries {
  readonly #options: DeliveriesOptions
  readonly #stop = new AbortController()
  /** Empty while another replica leads. */
  #couriers: ReadonlyMap<string, Deliverer> = new Map()
  #leading: Promise<void> = Promise.resolve()

  constructor(options: DeliveriesOptions) {
    this.#options = options
  }

  start(): void {
    this.#options.leadership.run('notifications', (_, signal) => {
      this.#leading = this.#lead(AbortSignal.any([signal, this.#stop.signal]))
      return this.#leading
    })
  }

  /** Called with each notice that is queued, by any replica. */
  offer(notice: Notice, to: Iterable<string>): void {
    for (const name of to) this.#couriers.get(name)?.offer(notice)
  }

  async close(): Promise<void> {
    const { clock } = this.#options
    this.#stop.abort()
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const cancel = clock.after(STOP_MS, resolve)
    await Promise.race([this.#leading, late])
    cancel()
  }

  async #lead(signal: AbortSignal): Promise<void> {
    const { clock, addMissing } = this.#options
    if (signal.aborted) return
    const couriers = new Map([...this.#options.receivers].map(([name, send]) => [name, this.#courier(name, send)]))
    this.#couriers = couriers
    for (const courier of couriers.values()) courier.start()
    const look = () => {
      this.#dropUnknown()
      addMissing()
    }
    look()
    const stopLooking = clock.every(LOOK_EVERY_MS, look)
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    stopLooking()
    this.#couriers = new Map()
    await Promise.all([...couriers.values()].map((courier) => courier.close()))
  }

  #courier(name: string, send: (notice: Notice) => Promise<Sent>): Deliverer {
    const { outbox, clock, ids, log } = this.#options
    return new Deliverer({ name, send, claim: (notice) => this.#claim(name, notice), outbox, clock, ids, log })
  }

  async #claim(name: string, { id }: Notice): Promise<Claim | 'settled' | 'busy'> {
    const { outbox, leases, catchUp } = this.#options
    try {
      const lease = await leases.acquire(`notice/${name}/${id}`, CLAIM_MS)
      if (lease === null) return 'busy'
      await catchUp?.()
      if (outbox.isWaiting(id, name)) return lease
      await lease.release()
      return 'settled'
    } catch {
      // The state database is away: another replica may be sending it.
      return 'busy'
    }
  }

  /** Drops notices for notifiers that are not configured. A replica that was not restarted yet may not know them, so those of others wait. */
  #dropUnknown(): void {
    const { outbox, receivers, catchUp, clock } = this.#options
    for (const name of outbox.names()) {
      if (receivers.has(name)) continue
      for (const { id, at } of outbox.waitingFor(name))
        if (catchUp === null || clock.now() - Date.parse(at) > GIVE_UP_AFTER_MS)
          void outbox.settle(id, name, 'there is no such notifier any more')
    }
  }
}
