/** Mulberry32's step and mixing constants: a small generator whose whole state is one 32-bit number. */
const STEP = 0x6d2b79f5
const RANGE = 2 ** 32

/** Random draws that the same seed repeats on every machine. */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** An integer from 0 to `n` - 1. */
  below(n: number): number {
    this.#state = (this.#state + STEP) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / RANGE) * n)
  }

  /** True in `percent` of a hundred throws. */
  chance(percent: number): boolean {
    return this.below(100) < percent
  }

  one<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new Error('nothing to draw from')
    return item
  }

  /** Bytes of any value. */
  bytes(length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length)
    for (let i = 0; i < length; i++) bytes[i] = this.below(256)
    return bytes
  }

  /** The name with random letter case, which HTTP ignores. */
  anyCase(name: string): string {
    return name.replace(/[a-z]/g, (letter) => (this.chance(50) ? letter.toUpperCase() : letter))
  }
}
