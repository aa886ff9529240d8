/** Where a progress bar may be drawn. */
export interface ProgressScreen {
  readonly isTTY?: boolean
  write(text: string): unknown
}

export interface ProgressBar {
  show(done: number, total: number): void
  clear(): void
}

const BAR_WIDTH = 30

/** Draws nothing unless a person looks on, and `total` is at least `least`. */
export function progressBar(screen: ProgressScreen, least: number): ProgressBar {
  let drawn = -1
  return {
    show(done, total) {
      const percent = Math.min(100, Math.floor((done / total) * 100))
      if (screen.isTTY !== true || total < least || percent === drawn) return
      drawn = percent
      const full = Math.floor((percent / 100) * BAR_WIDTH)
      screen.write(`\r${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)} ${String(percent).padStart(3)} %`)
    },
    clear() {
      if (drawn >= 0) screen.write(`\r${' '.repeat(BAR_WIDTH + 6)}\r`)
    },
  }
}
