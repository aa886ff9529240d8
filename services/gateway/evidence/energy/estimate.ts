import type { Outcome, Usage } from '../../call/index.ts'
import type { Bounds, ModelFactors } from './table.ts'

/** Integer bounds of an estimated value. Members are in canonical order, as records need them. */
export type Range = {
  readonly max: number
  readonly min: number
}

/** Number of tokens per factor. */
const KILO = 1000n
/** Milliseconds of an hour. */
const HOUR_MS = 3_600_000n
/** Millionths of a Wh in a kWh. */
const MICRO_WH_OF_KWH = 1_000_000_000n
const LARGEST = BigInt(Number.MAX_SAFE_INTEGER)

/** Energy of a model call by its tokens and its duration, in millionths of a Wh. The lower bound is rounded down, the upper one up. */
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

/** Micrograms of CO2e of this energy on a grid. */
export function carbonOf(microWh: Range, grid: Bounds): Range {
  const min = BigInt(microWh.min) * grid.min
  const max = BigInt(microWh.max) * grid.max
  return rounded({ min, max }, MICRO_WH_OF_KWH)
}

/** `prompt` includes the cached tokens. */
function tokenEnergy(factors: NonNullable<ModelFactors['tokens']>, usage: Usage, bound: keyof Bounds): bigint {
  const { prompt, completion, cachedRead } = usage
  return (
    count(prompt - cachedRead) * factors.input[bound] +
    count(cachedRead) * factors.cachedRead[bound] +
    count(completion) * factors.output[bound]
  )
}

/** Clamps inconsistent usage of providers: a negative part would cancel another. */
function count(amount: number): bigint {
  return amount > 0 ? BigInt(Math.round(amount)) : 0n
}

function rounded({ min, max }: Bounds, divisor: bigint): Range {
  return { max: safe((max + divisor - 1n) / divisor), min: safe(min / divisor) }
}

function safe(amount: bigint): number {
  return Number(amount > LARGEST ? LARGEST : amount)
}
