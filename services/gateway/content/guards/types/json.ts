/** Returns a member of an object or element of a list, or undefined. */
export function step(value: unknown, name: string | number): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) return value[Number(name)]
  const entry = Object.entries(value).find(([key]) => key === name)
  return entry?.[1]
}

/** Follows a path. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce(step, value)
}

/** Returns the elements of a list; empty if it is not a list. */
export function elements(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Returns a score as number; booleans count as 1 or 0. Null for other values. */
export function scoreOf(value: unknown): number | null {
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'number' ? value : null
}
