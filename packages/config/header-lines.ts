/** `Name: value` (RFC 9110, section 5). */
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)[\t ]*$/
/** What the client says itself. */
const OWN_HEADERS: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding', 'connection'])

/**
 * The headers in the lines of a file, names in lower case; empty lines do not count. A number: the first line that is no `Name: value`, or
 * names what the client says itself.
 */
export function headerLines(text: string): Readonly<Record<string, string>> | number {
  const headers: Record<string, string> = {}
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '') continue
    const [, name = '', value = ''] = HEADER.exec(line) ?? []
    const header = name.toLowerCase()
    if (header === '' || OWN_HEADERS.has(header)) return index + 1
    headers[header] = value
  }
  return headers
}
