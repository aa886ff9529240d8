/** A part of a text: characters as they are, or one that cannot be seen or changes the direction of others. */
export interface TextPart {
  readonly text: string
  /** Whether `text` is a name such as `U+202E` in place of the character. */
  readonly isNamed: boolean
}

/**
 * Characters that have no shape or change their surroundings: controls except tab and line feed, format characters (direction, zero width, soft hyphen),
 * line separators, surrogates, unassigned and private ones, fillers, and variation selectors. An invisible tag can carry a whole sentence.
 */
const HIDDEN =
  /(?![\t\n])(?:[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\p{Co}\p{Zl}\p{Zp}\u115f\u1160\u17b4\u17b5\u3164\uffa0]|\u034f|\p{Variation_Selector})/gu

/** More combining marks in a row than this draw over other lines. */
const MARKS = /\p{M}{5,}/gu

/** Splits a text so that everything in it can be seen. */
export function partsOf(text: string): readonly TextPart[] {
  const parts: TextPart[] = []
  let end = 0
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > end) parts.push({ text: calm(text.slice(end, match.index)), isNamed: false })
    parts.push({ text: nameOf(match[0]), isNamed: true })
    end = match.index + match[0].length
  }
  if (end < text.length) parts.push({ text: calm(text.slice(end)), isNamed: false })
  return parts
}

/** A text in which nothing is hidden, where only text fits: titles and attributes. */
export function plainText(text: string, maxChars = 200): string {
  const cut = text.length > maxChars ? `${headOf(text, maxChars)}…` : text
  return partsOf(cut)
    .map(({ text: part, isNamed }) => (isNamed ? `[${part}]` : part.replaceAll(/[\t\n]/g, ' ')))
    .join('')
}

/** The first characters of a text, without half of a surrogate pair. */
export function headOf(text: string, maxChars: number): string {
  const head = text.slice(0, maxChars)
  return /[\ud800-\udbff]$/.test(head) ? head.slice(0, -1) : head
}

function nameOf(char: string): string {
  return `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

function calm(text: string): string {
  return text.replaceAll(MARKS, (marks) => `${[...marks].slice(0, 4).join('')}[+${[...marks].length - 4} marks]`)
}
