import { join } from 'node:path'
import type { Clock } from '@plat/core'
import { createLog, type Log, type LogLine } from '@plat/process'
import { plain } from '../shared/output.ts'

/** The same line is printed once in this time, in milliseconds. */
const REPEAT_MS = 60_000
/** Lines printed in that time: what agents do can cause many. */
const LINES_MAX = 10
/** Longest value of a field, in UTF-16 units. */
const VALUE_MAX = 200

/** Returns the logs of services, in files of a folder or on stdout. With files, problems of the gateway are printed in the terminal as well. */
export function openLogs(options: {
  readonly folder: string
  readonly to: 'file' | 'json'
  readonly print: (line: string) => void
  readonly clock: Clock
}): { readonly terminal: TerminalLog; logTo(service: 'gateway' | 'identity' | 'operator'): Log } {
  const { folder, to, print, clock } = options
  const fileOf = (service: string) => join(folder, `${service}.jsonl`)
  const terminal = new TerminalLog({ logFile: fileOf('gateway'), print, clock })
  return {
    terminal,
    logTo(service) {
      if (to === 'json') return createLog({ service })
      const destination = fileOf(service)
      return createLog({ service, destination, ...(service === 'gateway' && { onLine: terminal.onLine }) })
    },
  }
}

/**
 * Prints problems of a running service in the terminal, from `begin` on: warnings and errors of its log, and the lines that say that one is over
 * (`recovered: true`).
 */
export class TerminalLog {
  readonly #logFile: string
  readonly #print: (line: string) => void
  readonly #clock: Clock
  readonly #printed = new Set<string>()
  #begun = false
  #omitted = false
  #resetAt = 0

  constructor(options: { readonly logFile: string; readonly print: (line: string) => void; readonly clock: Clock }) {
    this.#logFile = options.logFile
    this.#print = options.print
    this.#clock = options.clock
  }

  /** Called when the start is over: until then its caller reports what is wrong. */
  begin(): void {
    this.#begun = true
  }

  readonly onLine = ({ level, fields, message }: LogLine): void => {
    const recovered = 'recovered' in fields && fields.recovered === true
    if (!this.#begun || (level === 'info' && !recovered)) return
    const label = level === 'info' ? 'fixed' : level === 'warn' ? 'warning' : 'error'
    this.#write(`${label}: ${plain(message)}${textOf(fields)}`)
  }

  #write(line: string): void {
    const now = this.#clock.monotonic()
    if (now >= this.#resetAt) {
      this.#printed.clear()
      this.#omitted = false
      this.#resetAt = now + REPEAT_MS
    }
    if (this.#printed.has(line)) return
    if (this.#printed.size < LINES_MAX) {
      this.#printed.add(line)
      this.#print(line)
    } else if (!this.#omitted) {
      this.#omitted = true
      this.#print(`more warnings are in ${this.#logFile}`)
    }
  }
}

/** The fields that are text or numbers, such as ` (server: default/notes, reason: it does not accept connections)`. */
function textOf(fields: object): string {
  const named = Object.entries(fields).flatMap(([name, value]) =>
    typeof value === 'string' || typeof value === 'number' ? [`${name}: ${short(plain(String(value)))}`] : [],
  )
  return named.length === 0 ? '' : ` (${named.join(', ')})`
}

function short(text: string): string {
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX)}…` : text
}
