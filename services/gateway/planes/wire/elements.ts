import { findSpan, type Span } from '@plat/core'

/** Returns the bytes with only those elements of the array at `span` for which `keep` is true. */
export function keepElements(bytes: Uint8Array, span: Span, keep: (index: number) => boolean): Uint8Array {
  const elements = elementSpans(bytes, span)
  const remaining = elements.filter((_, index) => keep(index))
  if (remaining.length === elements.length) return bytes
  const comma = Buffer.from(',')
  const parts = remaining.flatMap(([start, end], index) => {
    const element = bytes.subarray(start, end)
    return index === 0 ? [element] : [comma, element]
  })
  return Buffer.concat([bytes.subarray(0, span[0] + 1), ...parts, bytes.subarray(span[1] - 1)])
}

/** Returns the span of each element of an array. The bytes must have passed the strict JSON scanner. */
function elementSpans(bytes: Uint8Array, [start, end]: Span): Span[] {
  const found: Span[] = []
  let at = start + 1
  while (at < end - 1) {
    const span = findSpan(bytes.subarray(at, end - 1), [])
    if (span === null || span[0] >= end - 1 - at) break
    found.push([at + span[0], at + span[1]])
    const comma = bytes.indexOf(COMMA, at + span[1])
    if (comma === -1 || comma >= end) break
    at = comma + 1
  }
  return found
}

const COMMA = 0x2c
