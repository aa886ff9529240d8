import { parseStrict } from '@plat/core'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'

const nodes = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 })

/** The most nodes at once of a day and of a month, as they are kept. Both are of UTC. */
const peaksSchema = Type.Object({
  version: Type.Literal(1),
  day: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$' }),
  dayNodes: nodes,
  month: Type.String({ pattern: '^\\d{4}-\\d{2}$' }),
  monthNodes: nodes,
})

export type Peaks = Readonly<Static<typeof peaksSchema>>

/** The stored peaks; null if there are none or they are invalid. */
export function readPeaks(text: string): Peaks | null {
  try {
    const value = parseStrict(text)
    return Value.Check(peaksSchema, value) ? value : null
  } catch {
    return null
  }
}

/** The peaks after a sample at `time` (RFC 3339, UTC): a new day and a new month begin with it. */
export function raised(before: Peaks | null, current: number, time: string): Peaks {
  const [day, month] = [time.slice(0, 10), time.slice(0, 7)]
  return {
    version: 1,
    day,
    dayNodes: Math.max(current, before?.day === day ? before.dayNodes : 0),
    month,
    monthNodes: Math.max(current, before?.month === month ? before.monthNodes : 0),
  }
}
