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
