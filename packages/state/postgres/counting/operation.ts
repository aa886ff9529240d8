import { StateUnreachableError } from '../pool.ts'

/** One item of a hold as stored: key, window, amount, cap, and end of the window. */
export interface StoredItem {
  readonly k: string
  readonly w: string
  readonly a: number
  readonly c: number
  readonly e: number | null
}

/** `ref` identifies one take: a release applies only to its own take. */
export type Operation =
  | {
      readonly do: 'take'
      readonly id: string
      readonly ref: string
      /** Milliseconds from now until the hold of a lost gateway counts as spent. */
      readonly ttl: number
      readonly taken: string
      readonly items: readonly StoredItem[]
    }
  | {
      readonly do: 'extend'
      readonly id: string
      readonly ref: string
      readonly grown: number
      readonly more: readonly StoredItem[]
      readonly items: readonly StoredItem[]
    }
  | {
      readonly do: 'settle'
      readonly id: string
      readonly ref: string
      readonly spent: Readonly<Record<string, number>>
      readonly items: readonly StoredItem[]
      /** The take may still be in transit: it must then find its release. */
      readonly unsure: boolean
    }

/** Result of an operation; the kind of operation determines the members. */
export interface Counted {
  /** `take`: the hold is already open, with these or with other items. */
  readonly same?: boolean
  /** Index of the item that did not fit, and what is left of its cap. */
  readonly short?: number
  readonly left?: number
  /** `take`: already released, or sent too long ago. `extend`: the hold is not open. */
  readonly over?: boolean
  /** `settle`: the total spent of each item. */
  readonly spent?: readonly number[]
}

/** An operation was not counted, as far as is known. */
export class NotCountedError extends StateUnreachableError {
  /** True when the database may have received it. */
  readonly wasSent: boolean

  constructor(message: string, wasSent: boolean, options?: ErrorOptions) {
    super(message, { ...options, stage: wasSent ? 'unknown' : 'connect' })
    this.wasSent = wasSent
  }
}
