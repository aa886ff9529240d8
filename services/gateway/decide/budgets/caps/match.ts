import { glob } from '@plat/core'

/** Returns whether a text matches one of the patterns, which may have globs; without patterns every text does. */
export function anyOf(patterns: readonly string[] | undefined): (text: string) => boolean {
  if (patterns === undefined) return () => true
  const plain = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const globs = patterns.filter((pattern) => pattern.includes('*')).map(glob)
  return (text) => plain.has(text) || globs.some((matches) => matches(text))
}
