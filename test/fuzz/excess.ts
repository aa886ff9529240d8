import type { Cost } from './measure.ts'

/** Growth from n to 4n beyond which work or memory is not linear. */
const MAX_GROWTH = 6
/** Longest unbroken stretch of the event loop, in milliseconds, where `JSON.parse` of the same text is faster than a third of it. */
const MAX_STRETCH_MS = 20
/** Runs below this are too short to compare, in milliseconds. */
export const MEASURABLE_MS = 8
/** Allocations below this are too small to compare, in bytes. */
const MEASURABLE_BYTES = 1024 * 1024
/** So many copies of its input any work may make. */
const COPIES = 3

/** The cost at a quarter of the limit and at the limit. */
export interface Costs {
  readonly before: Cost
  readonly after: Cost
}

/** Cost of other work over the text at the limit. */
export interface Yardstick {
  /** `JSON.parse`, in milliseconds. */
  readonly parseMs: number
  /** A copy into new memory that is read once, in milliseconds. */
  readonly copyMs: number
  /** By how much stretches may exceed what is allowed. */
  readonly slack: number
}

/** Says what is not in proportion to the size of the text; null when all is. */
export function excessOf({ before, after }: Costs, { parseMs, copyMs, slack }: Yardstick): string | null {
  const allowedMs = slack * Math.max(MAX_STRETCH_MS, 3 * parseMs)
  if (after.stretchMs > allowedMs)
    return `an unbroken stretch of ${after.stretchMs.toFixed(1)} ms, allowed are ${allowedMs.toFixed(1)}`
  // Not even JSON.parse is linear in all it makes: its objects are collected as well. Page faults of new memory, and large texts that do not fit
  // into the caches of the processor, make a machine look as if it were not linear: a few copies are free.
  const isLong = after.ms > Math.max(MEASURABLE_MS, 3 * parseMs)
  if (isLong && grows(before.ms, after.ms) && grows(before.ms, after.ms - COPIES * copyMs))
    return `grows from ${before.ms.toFixed(1)} to ${after.ms.toFixed(1)} ms with four times the input`
  const [few, many] = [bytesOf(before), bytesOf(after)]
  if (many > MEASURABLE_BYTES && grows(few, many)) return `allocates ${few} bytes and ${many} for four times the input`
  return null
}

const bytesOf = (cost: Cost) => Math.round(cost.heapBytes + cost.outsideBytes)

const grows = (before: number, after: number) => after > MAX_GROWTH * before
