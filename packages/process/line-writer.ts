import { type Clock, systemClock } from '@plat/core'

/** Destination of log lines. */
export interface LineSink {
  write(lines: string): void
}

/** How long lines are buffered after one that was written, in milliseconds. SIGKILL may lose that much. */
export const GATHER_MS = 10
/** Number of buffered UTF-16 units that are written without further delay. */
const GATHER_UNITS = 64 * 1024

/** Writers with buffered lines, which are flushed when the process ends. */
const gathering = new Set<LineWriter>()
process.on('exit', () => {
  for (const writer of gathering) writer.flush()
})

/**
 * Writes a lone line at once, and the lines of the next `GATHER_MS` in one further write: a busy service pays one system call for many lines, and a
 * quiet one writes without delay.
 */
export class LineWriter implements LineSink {
  readonly #sink: LineSink
  readonly #clock: Clock
  #waiting = ''

  constructor(sink: LineSink, clock: Clock = systemClock) {
    this.#sink = sink
    this.#clock = clock
  }

  write(line: string): void {
    if (!gathering.has(this)) {
      gathering.add(this)
      this.#clock.after(GATHER_MS, () => {
        this.flush()
        gathering.delete(this)
      })
      this.#sink.write(line)
      return
    }
    this.#waiting += line
    if (this.#waiting.length >= GATHER_UNITS) this.flush()
  }

  flush(): void {
    if (this.#waiting === '') return
    const lines = this.#waiting
    this.#waiting = ''
    this.#sink.write(lines)
  }
}
