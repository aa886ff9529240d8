import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import { LineReader } from './lines.ts'

/** Longest logged line, in bytes; longer ones are cut. */
const LINE_MAX_BYTES = 4096
/** Lines of one process that are logged in a second; the rest is counted. */
const LINES_PER_SECOND = 50
const SECOND_MS = 1000
/** Shorter values of Secrets are not looked for: they would occur everywhere. */
const SECRET_MIN_CHARS = 6

const REMOVED = '[removed]'

/** Logs what a process writes to stderr, line by line, within limits and without the values of its Secrets. */
export class StderrLog {
  readonly #reader: LineReader
  readonly #log: Log
  readonly #clock: Clock
  readonly #secrets: readonly string[]
  #second = Number.NEGATIVE_INFINITY
  #lines = 0
  #dropped = 0

  constructor({
    log,
    clock,
    secrets,
  }: { readonly log: Log; readonly clock: Clock; readonly secrets: readonly string[] }) {
    this.#log = log
    this.#clock = clock
    // Lines are logged one by one, and the longest value first: one may begin another.
    const parts = secrets.flatMap((secret) => secret.split(/\r?\n/)).filter(({ length }) => length >= SECRET_MIN_CHARS)
    this.#secrets = parts.toSorted((a, b) => b.length - a.length)
    this.#reader = new LineReader(LINE_MAX_BYTES, {
      line: (bytes) => this.#write(bytes, false),
      tooLong: (start) => this.#write(start, true),
    })
  }

  push(chunk: Uint8Array): void {
    this.#reader.push(chunk)
  }

  end(): void {
    this.#reader.end()
    this.#reportDropped()
  }

  #write(bytes: Uint8Array, isCut: boolean): void {
    const now = this.#clock.monotonic()
    if (now - this.#second >= SECOND_MS) {
      this.#reportDropped()
      this.#second = now
      this.#lines = 0
    }
    this.#lines++
    if (this.#lines > LINES_PER_SECOND) {
      this.#dropped++
      return
    }
    const whole = Buffer.from(bytes).toString('utf8')
    // The cut may be within a secret, whose beginning would not be found.
    const text = isCut ? whole.slice(0, Math.max(0, whole.length - (this.#secrets[0]?.length ?? 0))) : whole
    const clean = escaped(this.#withoutSecrets(text))
    this.#log.info({ stderr: isCut ? `${clean}…` : clean }, 'the server wrote to stderr')
  }

  #reportDropped(): void {
    if (this.#dropped === 0) return
    this.#log.warn({ lines: this.#dropped }, 'lines of stderr were not logged: too many in a second')
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
