/** Units of one caller; an object, so that a change needs one look-up. */
interface Holding {
  units: number
}

/** Callers without units that are kept however few hold some. */
const MIN_IDLE = 64

/**
 * The callers of one level of a pool with their units. A caller that releases its last unit is kept for a while, because most acquire again at once:
 * a `Map` whose entries come and go replaces its table again and again. At most as many are kept as hold units, or `MIN_IDLE`.
 */
export class Holders {
  /** Maximum units per caller. */
  readonly max: number
  readonly #holdings = new Map<string, Holding>()
  /** Kept callers without units. */
  #idle = 0
  /** The last look-up: a caller is looked up several times in a row. */
  #name: string | null = null
  #holding: Holding | undefined

  constructor(max: number) {
    this.max = max
  }

  /** Number of callers that hold units. */
  get size(): number {
    return this.#holdings.size - this.#idle
  }

  /** Number of stored callers, with or without units. */
  get kept(): number {
    return this.#holdings.size
  }

  /** Returns the units of one caller. */
  unitsOf(name: string): number {
    return this.#find(name)?.units ?? 0
  }

  /** Adds units to a caller, or subtracts them; below zero is zero. */
  change(name: string, units: number): void {
    const holding = this.#find(name)
    if (holding === undefined) {
      if (units > 0) this.#insert(name, units)
      return
    }
    const before = holding.units
    holding.units = Math.max(0, before + units)
    if (before === 0 && holding.units > 0) this.#idle--
    if (before > 0 && holding.units === 0) this.#idle++
    if (this.#idle > MIN_IDLE && this.#idle > this.size) this.#forgetIdle()
  }

  #find(name: string): Holding | undefined {
    if (name === this.#name) return this.#holding
    this.#name = name
    this.#holding = this.#holdings.get(name)
    return this.#holding
  }

  #insert(name: string, units: number): void {
    this.#holding = { units }
    this.#holdings.set(name, this.#holding)
  }

  #forgetIdle(): void {
    for (const [name, { units }] of this.#holdings) if (units === 0) this.#holdings.delete(name)
    this.#idle = 0
    this.#name = null
    this.#holding = undefined
  }
}
