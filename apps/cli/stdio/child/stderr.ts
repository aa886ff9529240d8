import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import { LineReader } from './lines.ts'

/** Longest logged line, in bytes; longer ones are cut. */
const LINE_MAX_BYTES = 4096
/** Bytes of one process that are logged at once, and per second after that; the lines beyond are counted. */
const BURST_BYTES = 128 * 1024
const BYTES_PER_SECOND = 1024
/** Added to each line, since short lines cost as well. */
const LINE_OVERHEAD_BYTES = 128
/** How often the number of dropped lines is logged at most, in milliseconds. */
const REPORT_EVERY_MS = 10_000
/** Shorter values of Secrets are not looked for: they would occur everywhere. */
const SECRET_MIN_CHARS = 6

/** Characters of the last line that are stated as the reason of a failure. */
const STATED_MAX_CHARS = 200

const REMOVED = '[removed]'

/** Logs what a process writes to stderr, line by line, within limits and without the values of its Secrets. */
export class StderrLog {
  readonly #reader: LineReader
  readonly #log: Log
  readonly #clock: Clock
  readonly #secrets: readonly string[]
  #allowance = BURST_BYTES
  #countedAt: number
  #reportedAt: number
  #dropped = 0
  #lastLine: string | null = null

  constructor({
    log,
    clock,
    secrets,
  }: { readonly log: Log; readonly clock: Clock; readonly secrets: readonly string[] }) {
    this.#log = log
    this.#clock = clock
    this.#countedAt = clock.monotonic()
    this.#reportedAt = this.#countedAt
    // Lines are logged one by one, and the longest value first: one may begin another.
    const parts = secrets.flatMap((secret) => secret.split(/\r?\n/)).filter(({ length }) => length >= SECRET_MIN_CHARS)
    this.#secrets = parts.toSorted((a, b) => b.length - a.length)
    this.#reader = new LineReader(LINE_MAX_BYTES, {
      line: (bytes) => this.#write(bytes, false),
      tooLong: (start) => this.#write(start, true),
    })
  }

  /** The last line as logged, or its beginning; null: nothing was logged. */
  get lastLine(): string | null {
    return this.#lastLine
  }

  push(chunk: Uint8Array): void {
    this.#reader.push(chunk)
  }

  end(): void {
    this.#reader.end()
    this.#reportDropped()
  }

  #write(bytes: Uint8Array, isCut: boolean): void {
    if (!this.#isAllowed(bytes.length + LINE_OVERHEAD_BYTES)) {
      this.#dropped++
      return
    }
    const whole = Buffer.from(bytes).toString('utf8')
    // The cut may be within a secret, whose beginning would not be found.
    const text = isCut ? whole.slice(0, Math.max(0, whole.length - (this.#secrets[0]?.length ?? 0))) : whole
    const clean = escaped(this.#withoutSecrets(text))
    if (clean.trim() !== '') this.#lastLine = clean.slice(0, STATED_MAX_CHARS)
    this.#log.info({ stderr: isCut ? `${clean}…` : clean }, 'the server wrote to stderr')
  }

  #isAllowed(bytes: number): boolean {
    const now = this.#clock.monotonic()
    const refill = ((now - this.#countedAt) / 1000) * BYTES_PER_SECOND
    this.#allowance = Math.min(BURST_BYTES, this.#allowance + refill)
    this.#countedAt = now
    if (now - this.#reportedAt >= REPORT_EVERY_MS) this.#reportDropped()
    if (this.#allowance < bytes) return false
    this.#allowance -= bytes
    return true
  }

  #reportDropped(): void {
    this.#reportedAt = this.#clock.monotonic()
    if (this.#dropped === 0) return
    this.#log.warn({ lines: this.#dropped }, 'lines of stderr were not logged: the server writes too much')
    this.#dropped = 0
  }

  #withoutSecrets(text: string): string {
    return this.#secrets.reduce((rest, secret) => rest.replaceAll(secret, REMOVED), text)
  }
}

/** Escapes characters that would control a terminal that shows the log, and those that are invisible. */
export function escaped(text: string): string {
  return text
    .replace(/\r$/, '')
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (one) => `\\u${one.codePointAt(0)?.toString(16).padStart(4, '0')}`)
}
