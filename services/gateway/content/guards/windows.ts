/** Windows of one text (docs/spec/gateway.md, "Limits"). */
export const WINDOWS_MAX = 32

/** The part of a window that the next one reads again, so that nothing is cut in two: one in this many bytes. */
const OVERLAP = 8

/** A text in parts, each of at most so many bytes. */
export interface Windows {
  readonly parts: readonly string[]
  /** False: the text goes on behind the last of them. */
  readonly whole: boolean
}

/** Cuts a text into windows that overlap. No code point is cut, so a window holds at least one, however few bytes it may have. */
export function windowsOf(text: string, maxBytes: number): Windows {
  // A UTF-16 unit is at most three bytes of UTF-8: most texts need no counting.
  if (text.length * 3 <= maxBytes) return { parts: [text], whole: true }
  const bytes = Buffer.from(text)
  const parts: string[] = []
  const overlap = Math.floor(maxBytes / OVERLAP)
  let start = 0
  while (parts.length < WINDOWS_MAX) {
    const end = endOf(bytes, start, maxBytes)
    parts.push(bytes.toString('utf8', start, end))
    if (end >= bytes.length) return { parts, whole: true }
    const next = startOf(bytes, end - overlap)
    start = next > start ? next : end
  }
  return { parts, whole: false }
}

/** The last place before `start + maxBytes` at which a code point begins, but one code point on at least. */
function endOf(bytes: Uint8Array, start: number, maxBytes: number): number {
  const end = startOf(bytes, Math.min(bytes.length, start + maxBytes))
  if (end > start) return end
  let next = start + 1
  while (isInside(bytes[next])) next++
  return next
}

function startOf(bytes: Uint8Array, at: number): number {
  let start = at
  while (isInside(bytes[start])) start--
  return start
}

/** A byte inside a code point's UTF-8, not at its start. */
function isInside(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
