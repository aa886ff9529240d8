import type { Rec } from '../../types.ts'

/** The intents without an outcome among the records with a place in the chain, by call. */
export class OpenIntents {
  readonly #seqs: Map<string, number>

  /** `seqs`: number of the intent of each call that is open already. */
  constructor(seqs: ReadonlyMap<string, number>) {
    this.#seqs = new Map(seqs)
  }

  /** Returns the numbers in order. */
  seqs(): readonly number[] {
    return [...this.#seqs.values()].sort((a, b) => a - b)
  }

  get size(): number {
    return this.#seqs.size
  }

  /** Called for each record that gets a place. Returns the number of the intent that it closes, or -1. */
  placed({ kind, call }: Rec, seq: number): number {
    if (typeof call !== 'string') return -1
    if (kind === 'intent') this.#seqs.set(call, seq)
    if (kind !== 'outcome') return -1
    const intent = this.#seqs.get(call)
    if (intent === undefined) return -1
    this.#seqs.delete(call)
    return intent
  }

  /** Called for each placed record that could not be made durable, with the result of `placed`. `durable`: the last record of the ledger. */
  failed({ kind, call }: Rec, intent: number, durable: number): void {
    if (typeof call !== 'string') return
    if (kind === 'intent') this.#seqs.delete(call)
    // The file has an intent without this outcome.
    else if (intent >= 0 && intent <= durable) this.#seqs.set(call, intent)
  }
}
