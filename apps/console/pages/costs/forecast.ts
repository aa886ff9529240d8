const DAY_MS = 86_400_000
/** Earlier in a window a forecast says nothing. */
const LEAST_SHARE = 0.02

/** Share of a window that has passed, up to 1; null: too little of it, or the window has no end. */
export function elapsedShare(window: string, resetsAtMs: number, nowMs: number): number | null {
  const begin = beginOf(window, resetsAtMs)
  if (begin === null) return null
  const share = Math.min(1, (nowMs - begin) / (resetsAtMs - begin))
  return share < LEAST_SHARE ? null : share
}

function beginOf(window: string, resetsAtMs: number): number | null {
  if (window === 'day') return resetsAtMs - DAY_MS
  if (window !== 'month') return null
  const end = new Date(resetsAtMs)
  return end.setUTCMonth(end.getUTCMonth() - 1)
}
