/** Removes trailing `char`s. `/x+$/` would restart at every occurrence, which is quadratic. */
export function withoutTrailing(text: string, char: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === char) end--
  return text.slice(0, end)
}

/** Returns the path of a request target: everything before `?`. */
export function pathOfTarget(target: string): string {
  const [path = ''] = target.split('?', 1)
  return path
}

/**
 * Returns a request target whose path has one trailing slash less, so that `/mcp/files/` is `/mcp/files`. Returns the target itself if the
 * path is `/` or ends in more than one slash.
 */
export function withoutTrailingSlash(target: string): string {
  const mark = target.indexOf('?')
  const end = mark < 0 ? target.length : mark
  if (end < 2 || target[end - 1] !== '/' || target[end - 2] === '/') return target
  return target.slice(0, end - 1) + target.slice(end)
}
