import { type Clock, systemClock } from '@plat/core'

/** Where log lines go in the end. */
export interface LineSink {
  write(lines: string): void
}

/** How long lines gather behind one that was written, in milliseconds. SIGKILL may take so much. */
export const GATHER_MS = 10
/** So many UTF-16 units are written without gathering any longer. */
const GATHER_UNITS = 64 * 1024

/** Writers with lines that are not written yet; an ending process writes them first. */
const gathering = new Set<LineWriter>()
process.on('exit', () => {
  for (const writer of gathering) writer.flush()
})

/**
 * Writes a lone line at once, and what comes within `GATHER_MS` behind it in one further write: a busy service pays one system call
 * for many lines, and a quiet one's lines are there before whatever comes next.
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
