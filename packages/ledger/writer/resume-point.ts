import { hash } from 'node:crypto'
import { isObject } from '@plat/core'
import type { Files } from '@plat/state'
import { lineAt } from '../find.ts'
import { type Head, readRawLine } from '../format.ts'
import { replaceText, type SourceFiles } from '../sequence/files.ts'
import type { LedgerSequence } from '../sequence/sequence.ts'
import { MAX_OPEN_CALLS } from './open-calls.ts'
import type { OpenIntents } from './sealing/open-intents.ts'

/** A durable record of the active file from which a start can read, instead of from the beginning of the file. */
export interface ResumePoint extends Head {
  readonly ledgerId: string
  /** `seq` of the first record of the file. */
  readonly first: number
  /** Position of the record's line in the file. */
  readonly offset: number
  /** `seq` of each intent without an outcome up to and including this record, in order. */
  readonly open: readonly number[]
}

/** A resume point with the hash of the record before it. */
export interface FoundPoint extends ResumePoint {
  readonly prev: string
}

/** File of the last resume point. A ledger is read from the beginning of its active file without it, or when it is not of this file. */
export function resumePath(ledgerPath: string): string {
  return `${ledgerPath}.resume.json`
}

function writeText(point: ResumePoint): string {
  const body = JSON.stringify({ v: 1, ...point })
  return `${body}\n${hash('sha256', body)}\n`
}

function readText(text: string): ResumePoint | null {
  const [body = '', digest = ''] = text.split('\n')
  if (hash('sha256', body) !== digest) return null
  const value: unknown = JSON.parse(body)
  if (!isObject(value) || value.v !== 1) return null
  const { ledgerId, first, seq, hash: digestOfLine, offset, open } = value
  if (typeof ledgerId !== 'string' || typeof digestOfLine !== 'string') return null
  if (!isCount(first) || !isCount(seq) || !isCount(offset)) return null
  if (!Array.isArray(open) || open.length > MAX_OPEN_CALLS || !open.every(isCount)) return null
  return { ledgerId, first, seq, hash: digestOfLine, offset, open }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** Returns the resume point of the active file, which begins with record `first`; null unless the file has this record at this position. */
export async function findResumePoint(
  path: string,
  files: SourceFiles,
  {
    sequence,
    ledgerId,
    first,
  }: { readonly sequence: LedgerSequence; readonly ledgerId: string | null; readonly first: number },
): Promise<FoundPoint | null> {
  const text = await files.text(resumePath(path))
  const point = text === null ? null : readText(text)
  if (point === null || point.ledgerId !== ledgerId || point.first !== first) return null
  const line = await lineAt(sequence, (sequence.parts.at(-1)?.offset ?? 0) + point.offset)
  const raw = line === null ? null : readRawLine(line, 0, line.length)
  if (raw === null || typeof raw === 'string' || raw.seq !== point.seq || raw.hash !== point.hash) return null
  return { ...point, prev: raw.prev }
}

/** Bytes of the active file for each open call that a resume point names: naming them writes little more than the records do. */
const BYTES_PER_OPEN_CALL = 256

export interface ResumeKeeperOptions {
  readonly path: string
  readonly ledgerId: string
  /** Null: the system's. */
  readonly files: Files | null
  readonly intents: OpenIntents
  /** Bytes of the active file between two resume points: a start reads little more. */
  readonly everyBytes: number
}

/** Saves a resume point for each stretch of the active file, once its record is durable. No commit waits for it. */
export class ResumeKeeper {
  readonly #options: ResumeKeeperOptions
  #first = 0
  #bytes = 0
  #nextAt = 0
  /** A record that is not durable yet, with the calls that were open when it got its place. */
  #pending: ResumePoint | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(options: ResumeKeeperOptions) {
    this.#options = options
  }

  /** Called before records of another file, or of the same one after a failure. */
  begin(first: number, bytes: number): void {
    this.#first = first
    this.#bytes = bytes
    this.#nextAt = bytes + this.#options.everyBytes
    this.#pending = null
  }

  /** Called with each record that gets its place, after its intent was counted, and with the bytes of its line. */
  placed({ seq, hash: digest }: Head, bytes: number): void {
    const offset = this.#bytes
    this.#bytes += bytes
    if (this.#bytes < this.#nextAt || this.#pending !== null) return
    const { ledgerId, intents, everyBytes } = this.#options
    this.#nextAt = this.#bytes + Math.max(everyBytes, intents.size * BYTES_PER_OPEN_CALL)
    this.#pending = { ledgerId, first: this.#first, seq, hash: digest, offset, open: intents.seqs() }
  }

  /** Called when the records up to this one are durable. */
  durable({ seq }: Head): void {
    const point = this.#pending
    if (point === null || seq < point.seq) return
    this.#pending = null
    // If it cannot be written, an older point or none is there, and a start reads more.
    this.#writing = this.#writing.then(() => this.#write(point)).catch(() => {})
  }

  /** Resolves when nothing is being written. */
  async close(): Promise<void> {
    await this.#writing
  }

  async #write(point: ResumePoint): Promise<void> {
    const { path, files } = this.#options
    const text = writeText(point)
    if (files === null) await replaceText(resumePath(path), text)
    else files.replace(resumePath(path), Buffer.from(text))
  }
}
