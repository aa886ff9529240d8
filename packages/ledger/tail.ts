import { unwatchFile, watchFile } from 'node:fs'
import { type Clock, isObject } from '@plat/core'
import { scanPresent } from './sequence/scan.ts'
import { LedgerSequence } from './sequence/sequence.ts'

/** Poll interval of a followed ledger, in milliseconds. */
const LOOK_EVERY_MS = 250

/** A line for display, not verified. */
export interface TailLine {
  readonly seq: number
  readonly hash: string
  readonly rec: Readonly<Record<string, unknown>>
  /** The stored line without its LF. */
  readonly text: string
}

export interface TailOptions {
  /** Only records from this `seq` on. */
  readonly from?: number
  /** Continues with new records until the signal aborts. */
  readonly follow?: { readonly signal: AbortSignal; readonly clock: Clock }
}

/** Yields complete lines of a ledger, which may be in use. Throws on a malformed line. */
export async function* tailLedger(path: string, options: TailOptions = {}): AsyncGenerator<TailLine> {
  const sequence = await LedgerSequence.open(path)
  try {
    let position = await sequence.startOf(options.from ?? 0)
    for (;;) {
      const batch: TailLine[] = []
      const rest = await scanPresent(sequence, {
        from: position,
        onLine(buffer, start, end, offset) {
          batch.push(readLine(buffer.toString('utf8', start, end), path, offset))
          position = offset + end - start + 1
          return batch.length < BATCH_LINES
        },
      })
      if (rest.tooLong) throw new Error(`${path}: byte ${rest.offset} begins no record; the line is too long`)
      yield* batch
      if (rest.stopped) continue
      if (options.follow === undefined || options.follow.signal.aborted) return
      await lookAgain(path, options.follow)
    }
  } finally {
    await sequence.close()
  }
}

/** Maximum number of lines held at once. */
const BATCH_LINES = 1000

/** Throws on malformed text; `offset` is its position in the file. */
export function readLine(text: string, path: string, offset: number): TailLine {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = null
  }
  if (!isObject(value) || !isObject(value.rec) || typeof value.seq !== 'number' || typeof value.hash !== 'string') {
    throw new Error(`${path}: byte ${offset} begins no record; look with: plat audit verify ${path}`)
  }
  return { seq: value.seq, hash: value.hash, rec: value.rec, text }
}

/** Resolves at the next poll, or when the signal aborts. */
async function lookAgain(path: string, { signal, clock }: { signal: AbortSignal; clock: Clock }): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const done = () => resolve()
  const cancel = clock.after(LOOK_EVERY_MS, done)
  // The clock's timers never keep a process alive, but a command that follows a ledger must stay alive.
  watchFile(path, { interval: LOOK_EVERY_MS }, done)
  signal.addEventListener('abort', done, { once: true })
  try {
    await promise
  } finally {
    cancel()
    unwatchFile(path, done)
    signal.removeEventListener('abort', done)
  }
}
