export interface TextDocument {
  /** Offsets in the text: from its comments and its `---` to the next document. */
  readonly start: number
  readonly end: number
  /** Line of `start`, from 1. */
  readonly line: number
}

/** A line that starts a document: YAML allows `---` at the start of a line nowhere else. */
const MARKER = /^---(?=[ \t\r]|$)/
/** Such a line without content. */
const BARE_MARKER = /^---[ \t]*(?:#.*)?\r?$/
/** A line without content: blank, a comment, or a directive. */
const EMPTY = /^(?:[ \t]*(?:#.*)?|%.*)\r?$/

/**
 * Splits a YAML text at its `---` lines. A part with comments and directives only belongs to the next document, or to none at the end, as
 * for kubectl. The documents are not parsed; a text without content has none.
 */
export function splitDocuments(text: string): readonly TextDocument[] {
  const documents: TextDocument[] = []
  let part = { start: 0, line: 1, hasMarker: false, hasContent: false }
  let number = 0
  for (const { at, line } of linesIn(text)) {
    number++
    if (!MARKER.test(line)) {
      part.hasContent ||= !EMPTY.test(line)
      continue
    }
    if (part.hasContent) documents.push({ start: part.start, end: at, line: part.line })
    if (part.hasContent || part.hasMarker) part = { start: at, line: number, hasMarker: true, hasContent: false }
    part.hasMarker = true
    part.hasContent = !BARE_MARKER.test(line)
  }
  if (part.hasContent) documents.push({ start: part.start, end: text.length, line: part.line })
  return documents
}

/**
 * Replaces one document, and keeps its leading comments and every other byte. `body` null removes it. Returns null if the text has no
 * other document.
 */
export function replaceDocument(text: string, document: TextDocument, body: string | null): string | null {
  const before = text.slice(0, document.start)
  const after = text.slice(document.end)
  if (body !== null) return before + headOf(text.slice(document.start, document.end)) + body + after
  return splitDocuments(before + after).length === 0 ? null : before + after
}

/** Leading comments and marker of a document. */
function headOf(text: string): string {
  for (const { at, line } of linesIn(text)) {
    if (BARE_MARKER.test(line) || EMPTY.test(line)) continue
    // A document may start on the line of its marker.
    return MARKER.test(line) ? `${text.slice(0, at)}---\n` : text.slice(0, at)
  }
  return text
}

/** Lines without their line feed, with their offsets. */
function* linesIn(text: string): Generator<{ readonly at: number; readonly line: string }> {
  for (let at = 0; at < text.length; ) {
    const newline = text.indexOf('\n', at)
    const end = newline === -1 ? text.length : newline
    yield { at, line: text.slice(at, end) }
    at = end + 1
  }
}
