/** The text without the characters `char` at its end. `/x+$/` would start again at each of them, wherever they are. */
export function withoutTrailing(text: string, char: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === char) end--
  return text.slice(0, end)
}

/** The path of a request target: what comes before `?`. */
export function pathOfTarget(target: string): string {
  const [path = ''] = target.split('?', 1)
  return path
}
