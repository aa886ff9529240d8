import { type Clock, systemClock } from '@plat/core'
import { type Logger, pino } from 'pino'
import { LineWriter } from './line-writer.ts'
import { withoutSecrets } from './redact.ts'

/** Structured log lines. Callers never pass secrets in `fields`; values that look like one are removed anyway. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  /** Returns a log that adds `fields` to every line. */
  child(fields: object): Log
}

export interface LogOptions {
  /** Member `service` of every line. */
  service: string
  /** `debug`, `info`, `warn` or `error`; anything else means `info` (docs/spec/gateway.md, `logLevel`). */
  level?: string
  /** A file's path (made with its folder, mode 0600) or a file descriptor; standard output when absent. */
  destination?: string | number
  /** Called with each line of level `info` or above, without secrets, beside being written. */
  onLine?: (line: LogLine) => void
}

/** A line as `onLine` receives it. */
export interface LogLine {
  readonly level: 'info' | 'warn' | 'error'
  readonly fields: object
  readonly message: string
}

const STDOUT_FD = 1
const LEVELS: ReadonlySet<string> = new Set(['debug', 'info', 'warn', 'error'])

/** Writes JSON lines `{"level","time","service",…,"msg"}`, at once or together with others a few milliseconds later. */
export function createLog({ service, level = 'info', destination = STDOUT_FD, onLine }: LogOptions): Log {
  const options = {
    level: LEVELS.has(level) ? level : 'info',
    base: { service },
    timestamp: stamps(systemClock),
    formatters: { level: (label: string) => ({ level: label }) },
  }
  const sink = pino.destination({ dest: destination, sync: true, mkdir: true, mode: 0o600 })
  const log = wrap(pino(options, new LineWriter(sink)))
  return onLine === undefined ? log : observed(log, onLine, {})
}

/** pino's time member. Many lines share a millisecond: its text is cached. */
function stamps(clock: Clock): () => string {
  let at = Number.NaN
  let text = ''
  return () => {
    const now = clock.now()
    if (now !== at) {
      at = now
      text = `,"time":"${new Date(now).toISOString()}"`
    }
    return text
  }
}

function wrap(logger: Logger): Log {
  return {
    debug: (fields, message) => {
      // The most frequent level is usually disabled, and then costs no copy.
      if (logger.isLevelEnabled('debug')) logger.debug(withoutSecrets(fields), withoutSecrets(message))
    },
    info: (fields, message) => logger.info(withoutSecrets(fields), withoutSecrets(message)),
    warn: (fields, message) => logger.warn(withoutSecrets(fields), withoutSecrets(message)),
    error: (fields, message) => logger.error(withoutSecrets(fields), withoutSecrets(message)),
    child: (fields) => wrap(logger.child({ ...withoutSecrets(fields) })),
  }
}

function observed(log: Log, onLine: (line: LogLine) => void, common: object): Log {
  const write = (level: LogLine['level']) => (fields: object, message: string) => {
    log[level](fields, message)
    onLine({ level, fields: withoutSecrets({ ...common, ...fields }), message: withoutSecrets(message) })
  }
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => observed(log.child(fields), onLine, { ...common, ...fields }),
  }
}

/** For tests and silent parts. */
export const silentLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
}
