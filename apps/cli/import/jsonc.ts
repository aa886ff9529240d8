const [CR, LF, SPACE, QUOTE, BACKSLASH] = [13, 10, 32, 34, 92]
const [SLASH, STAR, COMMA, CLOSE_OBJECT, CLOSE_ARRAY] = [47, 42, 44, 125, 93]

/**
 * Replaces comments and trailing commas of JSON by spaces, as editors accept them in their settings, and tabs by spaces. Lines and columns
 * stay the same. Text in strings is not changed.
 */
export function withoutComments(text: string): string {
  const units = new Uint16Array(text.length)
  for (let at = 0; at < text.length; at++) units[at] = text.charCodeAt(at)
  let comma = -1
  for (let at = 0; at < units.length; ) {
    const unit = units[at] ?? 0
    const end = unit === QUOTE ? endOfString(units, at) : endOfComment(units, at)
    if (unit !== QUOTE && (end > at || isSpace(unit))) {
      blank(units, at, Math.max(end, at + 1))
    } else {
      if (comma >= 0 && (unit === CLOSE_OBJECT || unit === CLOSE_ARRAY)) units[comma] = SPACE
      comma = unit === COMMA ? at : -1
    }
    at = Math.max(end, at + 1)
  }
  return Buffer.from(units.buffer).toString('utf16le')
}

/** Returns the end of the comment at an offset, or the offset if there is none. */
function endOfComment(units: Uint16Array, at: number): number {
  if (units[at] !== SLASH) return at
  if (units[at + 1] === SLASH) return indexOr(units, LF, at)
  if (units[at + 1] !== STAR) return at
  for (let end = units.indexOf(SLASH, at + 3); end !== -1; end = units.indexOf(SLASH, end + 1)) {
    if (units[end - 1] === STAR) return end + 1
  }
  return units.length
}

function endOfString(units: Uint16Array, at: number): number {
  for (let end = at + 1; end < units.length; end++) {
    if (units[end] === BACKSLASH) end++
    else if (units[end] === QUOTE) return end + 1
  }
  return units.length
}

function blank(units: Uint16Array, start: number, end: number): void {
  for (let at = start; at < end; at++) if (units[at] !== CR && units[at] !== LF) units[at] = SPACE
}

/** First unit of white space that needs the expression. */
const BEYOND_ASCII = 128

function isSpace(unit: number): boolean {
  return unit < BEYOND_ASCII ? unit === SPACE || (unit >= 9 && unit <= CR) : /\s/.test(String.fromCharCode(unit))
}

function indexOr(units: Uint16Array, unit: number, from: number): number {
  const found = units.indexOf(unit, from)
  return found === -1 ? units.length : found
}
