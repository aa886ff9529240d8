import { readFileSync } from 'node:fs'
import { isMissing } from './file/files.ts'
import { JournalError } from './file-journal.ts'
import { readJournalLine } from './journal-line.ts'

/** An event of a journal as it is stored. */
export interface StoredEvent {
  readonly key: string
  readonly version: number
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly event: unknown
}

/** The content of a journal file. */
export interface StoredJournal {
  /** Number of the last event. */
  readonly seq: number
  readonly events: readonly StoredEvent[]
}

/**
 * Reads a journal file without changing it. Returns null if there is none. A torn last line was never acknowledged and is left out. Throws
 * JournalError when the file is damaged before it or has an event that `decode` does not know. Caller must hold the lock of the journal.
 */
export function readJournalFile(path: string, decode: (event: unknown) => unknown): StoredJournal | null {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
  const events: StoredEvent[] = []
  let seq = 0
  let start = 0
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
    const line = readJournalLine(bytes.toString('utf8', start, end))
    if (line === null) throw new JournalError(`journal ${path} is damaged at byte ${start}`)
    seq = line.snapshot ? Math.max(seq, line.seq) : line.seq + line.events.length - 1
    for (const [at, event] of line.events.entries()) {
      decode(event)
      events.push({ key: line.key, version: line.version + at, at: line.at, event })
    }
    start = end + 1
  }
  return { seq, events }
}
