import { StateUnreachableError } from '../pool.ts'

/** One item of a hold as the database stores it: key, window, amount, cap, and when the window ends. */
export interface StoredItem {
  readonly k: string
  readonly w: string
  readonly a: number
  readonly c: number
  readonly e: number | null
}

/** `ref` names one take: a release concerns only the take that it belongs to. */
export type Operation =
  | {
      readonly do: 'take'
      readonly id: string
      readonly ref: string
      /** Milliseconds from now until the hold of a gateway that is gone counts as spent. */
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
      /** The take may still be on its way: then it must find that it was released. */
      readonly unsure: boolean
    }

/** The result of an operation; which members are set follows from the operation. */
export interface Counted {
  /** `take`: the hold is open already, with these items or with others. */
  readonly same?: boolean
  /** Place of the item that did not fit, and what is left of its cap. */
  readonly short?: number
  readonly left?: number
  /** `take`: released already, or sent too long ago. `extend`: the hold is not open. */
  readonly over?: boolean
  /** `settle`: what is spent in total, for each item. */
  readonly spent?: readonly number[]
}

/** An operation that was not counted, as far as is known. */
export class NotCountedError extends StateUnreachableError {
  /** True: the database may have got it all the same. */
  readonly wasSent: boolean

  constructor(message: string, wasSent: boolean, options?: ErrorOptions) {
    super(message, { ...options, stage: wasSent ? 'unknown' : 'connect' })
    this.wasSent = wasSent
  }
}
