/**
 * Replaces comments and trailing commas of JSON by spaces, as editors accept them in their settings, and tabs by spaces. Lines and columns
 * stay the same. Text in strings is not changed.
 */
export function withoutComments(text: string): string {
  const parts: string[] = []
  let at = 0
  let comma = -1
  while (at < text.length) {
    const end = endOfToken(text, at)
    const token = text.slice(at, end)
    const isComment = token.startsWith('//') || token.startsWith('/*')
    const isSpace = token.trim() === ''
    if (comma >= 0 && (token === '}' || token === ']')) parts[comma] = ' '
    if (token === ',') comma = parts.length
    else if (!isComment && !isSpace) comma = -1
    parts.push(isComment || isSpace ? token.replace(/[^\r\n]/g, ' ') : token)
    at = end
  }
  return parts.join('')
}

/** End of the string, comment, white space, other character or run of characters at an offset. */
function endOfToken(text: string, at: number): number {
  const start = text[at]
  if (start === '"') return endOfString(text, at)
  if (start === '/' && text[at + 1] === '/') return indexOr(text, '\n', at)
  if (start === '/' && text[at + 1] === '*') {
    const end = text.indexOf('*/', at + 2)
    return end === -1 ? text.length : end + 2
  }
  TOKEN.lastIndex = at
  const [match = ''] = TOKEN.exec(text) ?? []
  return match === '' ? at + 1 : at + match.length
}

const TOKEN = /\s+|[^\s"/,{}[\]]+/y

function endOfString(text: string, at: number): number {
  for (let end = at + 1; end < text.length; end++) {
    if (text[end] === '\\') end++
    else if (text[end] === '"') return end + 1
  }
  return text.length
}

function indexOr(text: string, what: string, from: number): number {
  const found = text.indexOf(what, from)
  return found === -1 ? text.length : found
}
