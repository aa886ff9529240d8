/** Where log lines go in the end. */
export interface LineSink {
  write(lines: string): void
}

/** Writers with lines that are not written yet; an ending process writes them first. */
const gathering = new Set<TurnWriter>()
process.on('exit', () => {
  for (const writer of gathering) writer.flush()
})

/**
 * Writes the first line of a turn of the event loop at once, and what the same turn adds in one further write: a busy
 * service pays one system call for many lines, and a lone line is there before whatever comes next.
 */
export class TurnWriter implements LineSink {
  readonly #sink: LineSink
  #waiting = ''

  constructor(sink: LineSink) {
    this.#sink = sink
  }

  write(line: string): void {
    if (gathering.has(this)) {
      this.#waiting += line
      return
    }
    gathering.add(this)
    setImmediate(() => this.flush())
    this.#sink.write(line)
  }

  flush(): void {
    gathering.delete(this)
    if (this.#waiting === '') return
    const lines = this.#waiting
    this.#waiting = ''
    this.#sink.write(lines)
  }
}
