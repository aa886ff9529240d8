import type { Outcome, Usage } from '../../call/index.ts'
import type { Bounds, ModelFactors } from './table.ts'

/** Whole numbers between which a true value is thought to lie. Members stand in canonical order, as records want them. */
export type Range = {
  readonly max: number
  readonly min: number
}

/** Tokens that factors are for. */
const KILO = 1000n
/** Milliseconds of an hour. */
const HOUR_MS = 3_600_000n
/** Millionths of a Wh in a kWh. */
const MICRO_WH_OF_KWH = 1_000_000_000n
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER)

/** Millionths of a Wh for the call of a model: by what it used, and by how long it answered. The lower bound is rounded down, the upper one up. */
export function energyOf(
  { tokens, watts }: ModelFactors,
  { usage, upstreamMs }: Pick<Outcome, 'usage' | 'upstreamMs'>,
): Range {
  const of = (bound: keyof Bounds) => {
    const byTokens = tokens === null || usage === null ? 0n : tokenEnergy(tokens, usage, bound)
    const byTime = watts === null ? 0n : watts[bound] * count(upstreamMs)
    return byTokens * HOUR_MS + byTime * KILO
  }
  return rounded({ min: of('min'), max: of('max') }, KILO * HOUR_MS)
}

/** Micrograms of CO2e for so much energy on a grid. */
export function carbonOf(microWh: Range, grid: Bounds): Range {
  const min = BigInt(microWh.min) * grid.min
  const max = BigInt(microWh.max) * grid.max
  return rounded({ min, max }, MICRO_WH_OF_KWH)
}

/** `prompt` has the cached tokens in it. */
function tokenEnergy(factors: NonNullable<ModelFactors['tokens']>, usage: Usage, bound: keyof Bounds): bigint {
  const { prompt, completion, cachedRead } = usage
  return (
    count(prompt - cachedRead) * factors.input[bound] +
    count(cachedRead) * factors.cachedRead[bound] +
    count(completion) * factors.output[bound]
  )
}

/** Providers' numbers do not always add up; a negative part would make up for another. */
function count(amount: number): bigint {
  return amount > 0 ? BigInt(Math.round(amount)) : 0n
}

function rounded({ min, max }: Bounds, divisor: bigint): Range {
  return { max: safe((max + divisor - 1n) / divisor), min: safe(min / divisor) }
}

function safe(amount: bigint): number {
  return Number(amount > LARGEST ? LARGEST : amount)
}
