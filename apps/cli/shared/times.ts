import { parseDuration } from '@plat/core'
import { CommandError } from './output.ts'

/**
 * Reads a time of RFC 3339, a date, or a time before now such as `24h`, in milliseconds since the epoch. Returns null when it is none of them.
 */
export function readTime(text: string, now: number): number | null {
  const before = parseDuration(text)
  if (before !== null) return now - before
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? null : time
}

/** Reads a duration of at least a second, in milliseconds. `flag` names the flag in the error. */
export function readDuration(text: string, flag: string): number {
  const ms = parseDuration(text)
  if (ms !== null && ms >= 1000) return ms
  throw new CommandError(`-${flag}: ${text} is not a duration of at least a second; write it as 15m or 1h`, 2)
}
