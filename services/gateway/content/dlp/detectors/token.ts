import { type CharClass, classOf, isIn, type ScanState } from '../scan/scan-state.ts'
import type { Detector, Finder } from './detector.ts'

export const ALNUM = classOf('A-Za-z0-9')
export const WORDS = classOf('A-Za-z0-9_')
export const URLSAFE = classOf('A-Za-z0-9_-')
export const BASE64 = classOf('A-Za-z0-9+/=')
export const HEX = classOf('0-9a-f')

/** Minimum number of different characters; placeholders have fewer: `xxxx`, `0000`, `your-key`. */
const FEWEST_CHARACTERS = 8

export interface TokenRule {
  /** Vendor prefixes. */
  readonly anchors: readonly string[]
  /** Characters of the rest. */
  readonly of: CharClass
  /** Minimum length after the prefix. */
  readonly least: number
  /** Maximum length; null for no limit. */
  readonly most?: number | null
  /** Validates the characters after the prefix; of an unlimited token, the first `least`. */
  readonly is?: (body: string) => boolean
}

/** A token with a vendor prefix, followed by a number of characters of a class. */
export function token({ anchors, of, least, most = least, is = looksRandom }: TokenRule): Finder {
  return {
    anchors,
    find(look, detector, at, length) {
      if (!begins(look, at)) return
      const body = at + length
      if (most === null) return endless(look, detector, { at, body, of, least, is })
      const end = look.run(of, body, body + most + 1)
      if (end - body > most) return
      if (end === look.end && look.isOpen) return look.open(at)
      if (end - body >= least && look.ends(end) && is(look.slice(body, end))) look.hit(detector, at, end)
    },
  }
}

/** Words begin after a non-word character; a prefix that begins with another character may be anywhere. */
export function begins(look: ScanState, at: number): boolean {
  return !isIn(WORDS, look.code(at)) || look.begins(at)
}

interface Endless {
  readonly at: number
  readonly body: number
  readonly of: CharClass
  readonly least: number
  readonly is: (body: string) => boolean
}

/** The first characters decide; all following ones belong to it. */
function endless(look: ScanState, detector: Detector, { at, body, of, least, is }: Endless): void {
  if (look.isCovered(detector, at)) return
  const end = look.run(of, body)
  look.cover(detector, end)
  const isLong = end - body >= least
  if (isLong && !is(look.slice(body, body + least))) return
  const isOpen = end === look.end && look.isOpen
  if (isLong && isOpen) look.openHit(detector, at, body + least)
  else if (isLong) look.hit(detector, at, end)
  else if (isOpen) look.open(at)
}

/** Returns whether a text is not a placeholder. */
export function looksRandom(text: string): boolean {
  return differentCharacters(text) >= Math.min(FEWEST_CHARACTERS, text.length / 2)
}

function differentCharacters(text: string): number {
  return new Set(text).size
}

/** Shannon entropy in bits per character. */
export function entropyOf(text: string): number {
  const counts = new Map<string, number>()
  for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length)
  return bits
}
