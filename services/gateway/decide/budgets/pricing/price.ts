import { BATCH_PRICE, type Usage } from '../../../call/index.ts'

/** Micro-units per 1,000,000 tokens of each kind; null: unknown price. */
export interface Rates {
  readonly input: bigint | null
  readonly output: bigint | null
  readonly cachedRead: bigint | null
  readonly cachedWrite: bigint | null
  /** Cache writes with a lifetime above five minutes; absent: unknown price. */
  readonly cachedWrite1h?: bigint | null
  readonly reasoning: bigint | null
}

/** Prices beside tokens, in micro-units. */
export interface MediaPrices {
  /** Of one image, by `<size>/<quality>`, `<size>` or `*`. */
  readonly perImage: ReadonlyMap<string, number>
  /** Of 1,000,000 characters of speech; null: unknown. */
  readonly characters: bigint | null
  /** Of a minute of sound; null: unknown. */
  readonly perMinute: number | null
  /** The longest sound that the provider accepts; null: not stated. */
  readonly maxMinutes: number | null
  /** Of 1,000,000 tokens of images in the input; null: as of text. */
  readonly imageInput: bigint | null
}

export interface ModelPrice {
  readonly base: Rates
  /** Rates for longer prompts, which replace the base rates; the highest matching tier applies. Ascending. */
  readonly tiers: readonly { readonly aboveInputTokens: number; readonly rates: Rates }[]
  /** Micro-units per call, in addition to tokens. */
  readonly perCall: number
  /** Factors by option such as `service_tier=priority`, in millionths. */
  readonly multipliers?: ReadonlyMap<string, bigint>
  /** Prices of images and sound; absent: unknown. */
  readonly media?: MediaPrices
  /** Most input tokens of a request; absent: not stated. */
  readonly contextTokens?: number
}

/** Option of demands with cache writes that live longer than five minutes. */
const LONG_CACHE = 'cache_control.ttl=1h'

/**
 * Returns the price with the caller's options, or null if an option has no known price. An upper bound: a provider that serves the call
 * at the plain rate, or caches for five minutes only, charges less.
 */
export function withOptions(price: ModelPrice, options: readonly string[]): ModelPrice | null {
  let selected: ModelPrice = price
  for (const option of options) {
    const next = option === LONG_CACHE ? withLongCache(selected) : multiplied(selected, option)
    if (next === null) return null
    selected = next
  }
  return selected
}

function withLongCache(price: ModelPrice): ModelPrice | null {
  const all = [price.base, ...price.tiers.map(({ rates }) => rates)]
  if (!all.every(({ cachedWrite1h }) => (cachedWrite1h ?? null) !== null)) return null
  return withRates(price, (rates) => ({ ...rates, cachedWrite: rates.cachedWrite1h ?? null }))
}

function multiplied(price: ModelPrice, option: string): ModelPrice | null {
  const factor = price.multipliers?.get(option)
  // Outside of batches a request costs at least as much.
  if (factor === undefined) return option === BATCH_PRICE ? price : null
  const times = (rate: bigint | null) => (rate === null ? null : (rate * factor + MILLION - 1n) / MILLION)
  const scaled = withRates(price, (rates) => ({
    input: times(rates.input),
    output: times(rates.output),
    cachedRead: times(rates.cachedRead),
    cachedWrite: times(rates.cachedWrite),
    cachedWrite1h: times(rates.cachedWrite1h ?? null),
    reasoning: times(rates.reasoning),
  }))
  return { ...scaled, perCall: safe((BigInt(price.perCall) * factor + MILLION - 1n) / MILLION) }
}

function withRates(price: ModelPrice, change: (rates: Rates) => Rates): ModelPrice {
  const tiers = price.tiers.map(({ aboveInputTokens, rates }) => ({ aboveInputTokens, rates: change(rates) }))
  return { ...price, base: change(price.base), tiers }
}

const MILLION = 1_000_000n
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER)

/**
 * Returns the cost of a finished call in micro-units, rounded up once. `prompt` includes cached tokens, `completion` includes reasoning
 * tokens. A kind without a price costs as much as the most expensive known kind of its side. Zero tokens cost nothing: providers do not
 * charge refused calls.
 */
export function costOf(price: ModelPrice, usage: Usage): number {
  const { prompt, completion, cachedRead, cachedWrite, reasoning } = usage
  if (prompt === 0 && completion === 0) return 0
  const rates = ratesFor(price, prompt)
  const input = rates.input ?? dearestInput(rates)
  const output = rates.output ?? dearestOutput(rates)
  const parts =
    count(prompt - cachedRead - cachedWrite) * input +
    count(cachedRead) * (rates.cachedRead ?? input) +
    count(cachedWrite) * (rates.cachedWrite ?? dearestInput(rates)) +
    count(completion - reasoning) * output +
    count(reasoning) * (rates.reasoning ?? output)
  return rounded(parts, price)
}

/**
 * Returns the maximum cost of these tokens of any kind, in micro-units; null if a kind that every call has (input, and output if
 * requested) has no price.
 */
export function costAtMost(price: ModelPrice, input: number, output: number): number | null {
  const worst = worstRates(price, input, output > 0)
  return worst === null ? null : rounded(count(input) * worst.input + count(output) * worst.output, price)
}

/** Returns how many output tokens `micros` pay for in the worst case after the input; negative if not even the input fits. */
export function outputThatFits(price: ModelPrice, input: number, micros: number): number {
  const worst = worstRates(price, input, true)
  if (worst === null) return -1
  const left = BigInt(micros - price.perCall) * MILLION - count(input) * worst.input
  if (left < 0n) return -1
  if (worst.output === 0n) return Number.MAX_SAFE_INTEGER
  return safe(left / worst.output)
}

/** Returns the worst rates of all tiers that a prompt within the bound may fall into: lower tiers may be more expensive. */
function worstRates(price: ModelPrice, input: number, withOutput: boolean): Worst | null {
  const worst = { input: 0n, output: 0n }
  if (!isWorsened(worst, price.base, withOutput)) return null
  for (const { aboveInputTokens, rates } of price.tiers)
    if (input > aboveInputTokens && !isWorsened(worst, rates, withOutput)) return null
  return worst
}

interface Worst {
  input: bigint
  output: bigint
}

/** Returns false if these rates have no bound. */
function isWorsened(worst: Worst, rates: Rates, withOutput: boolean): boolean {
  if (rates.input === null || (withOutput && rates.output === null)) return false
  worst.input = larger(worst.input, dearestInput(rates))
  worst.output = larger(worst.output, dearestOutput(rates))
  return true
}

function ratesFor(price: ModelPrice, prompt: number): Rates {
  return price.tiers.findLast((tier) => prompt > tier.aboveInputTokens)?.rates ?? price.base
}

function dearestInput({ input, cachedRead, cachedWrite }: Rates): bigint {
  return larger(input ?? 0n, larger(cachedRead ?? 0n, cachedWrite ?? 0n))
}

function dearestOutput({ output, reasoning }: Rates): bigint {
  return larger(output ?? 0n, reasoning ?? 0n)
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}

/** Providers' numbers may be inconsistent; a negative part must not offset another. */
function count(tokens: number): bigint {
  return tokens > 0 ? BigInt(Math.floor(tokens)) : 0n
}

function rounded(parts: bigint, { perCall }: ModelPrice): number {
  return safe((parts + MILLION - 1n) / MILLION + BigInt(perCall))
}

function safe(amount: bigint): number {
  return Number(amount > LARGEST ? LARGEST : amount)
}
