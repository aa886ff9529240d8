import { readFile } from 'node:fs/promises'
import { isObject } from '@plat/core'
import { isMissing } from '@plat/state'
import type { Head } from '../format.ts'
import { replaceText } from '../sequence/files.ts'
import type { FollowedPosition } from './followed-file.ts'

const HASH = /^[0-9a-f]{64}$/

/** Positions in followed ledgers, with what was anchored last, in one file. */
export class PositionFile {
  readonly #path: string
  readonly #saved: Map<string, SavedPosition>
  #writing: Promise<void> = Promise.resolve()

  private constructor(path: string, saved: Map<string, SavedPosition>) {
    this.#path = path
    this.#saved = saved
  }

  /** Throws one line if the file is malformed: without it a ledger that was rewritten would be accepted. */
  static async open(path: string): Promise<PositionFile> {
    const text = await readFile(path, 'utf8').catch((error: unknown) => {
      if (isMissing(error)) return null
      throw error
    })
    const saved = text === null ? new Map<string, SavedPosition>() : decode(text)
    if (saved === null) {
      throw new Error(
        `${path} is not a file of positions: restore it, or move it away to follow all ledgers from their beginning`,
      )
    }
    return new PositionFile(path, saved)
  }

  of(name: string): SavedPosition | null {
    return this.#saved.get(name) ?? null
  }

  /** Resolves when the position is durable. */
  save(name: string, position: FollowedPosition | null, anchored: Head): Promise<void> {
    if (position !== null) this.#saved.set(name, { ...position, anchored })
    const written = this.#writing.then(() => {
      const ledgers = Object.fromEntries(this.#saved)
      return replaceText(this.#path, `${JSON.stringify({ v: 1, ledgers })}\n`)
    })
    this.#writing = written.catch(() => {})
    return written
  }
}

/** A position, and the record that was anchored last. */
export interface SavedPosition extends FollowedPosition {
  readonly anchored: Head
}

function decode(text: string): Map<string, SavedPosition> | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (!isObject(value) || value.v !== 1 || !isObject(value.ledgers)) return null
  const saved = new Map<string, SavedPosition>()
  for (const [name, given] of Object.entries(value.ledgers)) {
    const position = positionOf(given)
    if (position === null) return null
    saved.set(name, position)
  }
  return saved
}

function positionOf(value: unknown): SavedPosition | null {
  if (!isObject(value)) return null
  const [first, head, anchored, offset] = [
    headOf(value.first),
    headOf(value.head),
    headOf(value.anchored),
    value.offset,
  ]
  const signed = value.signed === null ? null : headOf(value.signed)
  if (first === null || head === null || anchored === null || typeof offset !== 'number') return null
  if (!Number.isSafeInteger(offset) || offset < 0 || (value.signed !== null && signed === null)) return null
  return { first, head, anchored, offset, signed }
}

function headOf(value: unknown): Head | null {
  if (!isObject(value)) return null
  const { seq, hash } = value
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || typeof hash !== 'string' || !HASH.test(hash)) return null
  return { seq, hash }
}
