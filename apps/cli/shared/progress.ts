import { type Clock, formatDuration, systemClock } from '@plat/core'

/** Where a progress bar may be drawn. */
export interface ProgressScreen {
  readonly isTTY?: boolean
  write(text: string): unknown
}

export interface ProgressBar {
  show(done: number, total: number): void
  clear(): void
}

export interface ProgressOptions {
  /** Nothing is drawn when `total` is smaller. */
  readonly least: number
  /** `done` is in bytes: shows the rate. */
  readonly isBytes?: boolean
  readonly clock?: Pick<Clock, 'monotonic'>
}

const BAR_WIDTH = 30
/** Fits into 80 columns. */
const LINE_WIDTH = 72
/** Between two drawings, and before the time left is shown, in milliseconds. */
const DRAW_MS = 200
const ESTIMATE_MS = 2000

/** Shows the part that is done, the rate and the time left on one line, if the screen is a terminal. */
export function progressBar(
  screen: ProgressScreen,
  { least, isBytes = false, clock = systemClock }: ProgressOptions,
): ProgressBar {
  const began = clock.monotonic()
  let drawn = Number.NEGATIVE_INFINITY
  return {
    show(done, total) {
      const now = clock.monotonic()
      if (screen.isTTY !== true || total < least || now - drawn < DRAW_MS) return
      drawn = now
      const share = Math.min(1, done / total)
      const full = Math.floor(share * BAR_WIDTH)
      const ms = now - began
      const rate = isBytes && ms > 0 ? `  ${(done / 1000 / ms).toFixed(0)} MB/s` : ''
      const left = ms >= ESTIMATE_MS && done > 0 ? `  ${timeText((ms * (total - done)) / done)} left` : ''
      const bar = `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)} ${String(Math.floor(share * 100)).padStart(3)} %`
      screen.write(`\r${`${bar}${rate}${left}`.padEnd(LINE_WIDTH)}`)
    },
    clear() {
      if (drawn !== Number.NEGATIVE_INFINITY) screen.write(`\r${' '.repeat(LINE_WIDTH)}\r`)
    },
  }
}

/** Whole seconds. */
function timeText(ms: number): string {
  return formatDuration(Math.max(1, Math.ceil(ms / 1000)) * 1000)
}
