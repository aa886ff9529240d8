import { SwapRemoveSet } from '@plat/core'
import type { OpenIntent, Rec } from '../../types.ts'

/**
 * The intents without an outcome among the records with a place in the chain. Those of live calls are found by their `OpenIntent`: as the key of a
 * `Map`, the id of each call would be internalized, which costs 1 µs per call. Records without an `OpenIntent`, as of a process that died, are found
 * by `call`.
 */
export class OpenIntents {
  readonly #live = new SwapRemoveSet<OpenIntent>()
  readonly #byCall: Map<string, number>

  /** `seqs`: number of the intent of each call that is open already. */
  constructor(seqs: ReadonlyMap<string, number>) {
    this.#byCall = new Map(seqs)
  }

  /** Returns the numbers in order. */
  seqs(): readonly number[] {
    return [...this.#byCall.values(), ...Array.from(this.#live, ({ seq }) => seq)].sort((a, b) => a - b)
  }

  get size(): number {
    return this.#byCall.size + this.#live.size
  }

  /** Called for each record that gets a place. Returns the number of the intent that it closes, or -1. */
  placed(rec: Rec, seq: number, intent: OpenIntent | undefined): number {
    if (intent === undefined) return this.#placedByCall(rec, seq)
    if (rec.kind === 'outcome') return this.#live.delete(intent) ? intent.seq : -1
    if (rec.kind !== 'intent') return -1
    intent.seq = seq
    this.#live.add(intent)
    return -1
  }

  #placedByCall({ kind, call }: Rec, seq: number): number {
    if (kind === 'intent' && typeof call === 'string') this.#byCall.set(call, seq)
    if (kind !== 'outcome' || this.#byCall.size === 0 || typeof call !== 'string') return -1
    const closed = this.#byCall.get(call)
    if (closed === undefined) return -1
    this.#byCall.delete(call)
    return closed
  }

  /** Called for each placed record that could not be made durable, with the result of `placed`. `durable`: the last record of the ledger. */
  failed({ kind, call }: Rec, intent: OpenIntent | undefined, closed: number, durable: number): void {
    // After a lost outcome the file has an intent without it, unless that is lost as well.
    const reopens = kind === 'outcome' && closed >= 0 && closed <= durable
    if (intent !== undefined) {
      if (kind === 'intent') this.#live.delete(intent)
      else if (reopens) this.#live.add(intent)
    } else if (typeof call === 'string') {
      if (kind === 'intent') this.#byCall.delete(call)
      else if (reopens) this.#byCall.set(call, closed)
    }
  }
}
