/** Maximum number of windows of a text (docs/spec/gateway.md, "Limits"). */
export const WINDOWS_MAX = 32

/** Overlap of windows, as a fraction of their size: one in this many bytes. */
const OVERLAP = 8

/** Parts of a text with a maximum size. */
export interface Windows {
  readonly parts: readonly string[]
  /** False if the text continues after the last part. */
  readonly whole: boolean
}

/** Splits a text into overlapping windows. No code point is split, so a window holds at least one, whatever its size. */
export function windowsOf(text: string, maxBytes: number): Windows {
  // A UTF-16 unit has at most three bytes of UTF-8: most texts need no counting.
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

/** Last boundary of a code point before `start + maxBytes`, but at least one code point after `start`. */
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

/** Whether a byte continues a code point. */
function isInside(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
